"""The JSON: sections, names, and the shape BMv2's loader insists on."""

import json
from pathlib import Path
from typing import Any

from compiler import compile_program

from .programs import P4, STAGES, bench, compile_text

SECTIONS = [
    "header_types", "headers", "header_stacks", "header_union_types", "header_unions",
    "header_union_stacks", "field_lists", "errors", "enums", "parsers", "parse_vsets",
    "deparsers", "meter_arrays", "counter_arrays", "register_arrays", "calculations",
    "learn_lists", "actions", "pipelines", "checksums", "force_arith", "extern_instances",
    "field_aliases", "program", "__meta__",
]  # fmt: skip


def router() -> dict[str, Any]:
    return compile_program(STAGES / "router.p4").json


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [item for item in items if item["name"] == name]
    return found


def primitives(program: dict[str, Any], action: str) -> list[str]:
    return [p["op"] for p in named(program["actions"], action)["primitives"]]


def test_all_sections_are_there() -> None:
    assert list(router()) == SECTIONS


def test_output_is_the_same_every_time() -> None:
    first, second = (compile_program(STAGES / "router.p4").json_text for _ in range(2))
    assert first == second


def test_ids_count_from_zero() -> None:
    program = router()
    for section in ("header_types", "headers", "actions", "calculations", "counter_arrays"):
        assert [item["id"] for item in program[section]] == list(range(len(program[section])))


def test_every_node_of_a_pipeline_leads_to_another_or_to_the_end() -> None:
    for path in sorted(P4.glob("*.p4")):
        program = compile_program(path).json
        for pipeline in program["pipelines"]:
            names = {t["name"] for t in pipeline["tables"]}
            names |= {c["name"] for c in pipeline["conditionals"]} | {None}
            targets = {pipeline["init_table"]}
            for table in pipeline["tables"]:
                targets |= {*table["next_tables"].values(), table["base_default_next"]}
            for condition in pipeline["conditionals"]:
                targets |= {condition["true_next"], condition["false_next"]}
            assert targets <= names, path.name


def test_every_field_that_is_used_exists() -> None:
    for path in sorted(P4.glob("*.p4")):
        program = compile_program(path).json
        types = {h["name"]: {f[0] for f in h["fields"]} for h in program["header_types"]}
        headers = {h["name"]: types[h["header_type"]] for h in program["headers"]}
        for header, field in _fields(program):
            assert field == "$valid$" or field in headers[header], f"{path.name}: {header}.{field}"


def _fields(node: object) -> list[tuple[str, str]]:
    if isinstance(node, dict):
        if node.get("type") == "field":
            return [tuple(node["value"])]
        return [f for value in node.values() for f in _fields(value)]
    if isinstance(node, list):
        return [f for value in node for f in _fields(value)]
    return []


def test_keys_have_the_names_of_the_source() -> None:
    ingress = named(router()["pipelines"], "ingress")
    assert named(ingress["tables"], "RouterIngress.routes")["key"] == [
        {"match_type": "lpm", "name": "hdr.ipv4.dst", "target": ["ipv4", "dst"], "mask": None}
    ]
    assert [k["name"] for k in named(ingress["tables"], "RouterIngress.paths")["key"]] == [
        "group",
        "path",
    ]


def test_next_tables_by_hit_and_miss() -> None:
    ingress = named(router()["pipelines"], "ingress")
    table = named(ingress["tables"], "RouterIngress.routes")
    assert set(table["next_tables"]) == {"__HIT__", "__MISS__"}
    assert table["default_entry"]["action_const"] is False


def test_results_are_masked_where_they_could_grow(tmp_path: Path) -> None:
    program = compile_text(tmp_path, bench("hdr.data.d = (hdr.data.d + hdr.data.e) >> 1;")).json
    text = json.dumps(program["actions"])
    assert '"op": "+"' in text
    assert '"value": "0xff"' in text


def test_a_branch_in_an_action_becomes_a_jump(tmp_path: Path) -> None:
    text = bench(
        "t.apply();",
        """
        action a(bit<8> x) {
            if (x > 3) { hdr.data.d = 1; } else { hdr.data.d = 2; }
            hdr.data.e = x;
        }
        table t { actions = { a; } default_action = a(1); }""",
    )
    program = compile_text(tmp_path, text).json
    assert primitives(program, "MyIngress.a") == [
        "_jump_if_zero",
        "assign",
        "_jump",
        "assign",
        "assign",
    ]
    jump, _, over, *_ = named(program["actions"], "MyIngress.a")["primitives"]
    assert jump["parameters"][1]["value"] == "0x00000003"
    assert over["parameters"][0]["value"] == "0x00000004"


def test_source_positions_name_file_line_and_text() -> None:
    action = named(router()["actions"], "RouterIngress.to_group")
    info = action["primitives"][0]["source_info"]
    line = (STAGES / "router.p4").read_text().splitlines()[info["line"] - 1]
    assert line[info["column"] :].startswith(info["source_fragment"])


def test_checksums_name_their_calculation() -> None:
    program = router()
    assert [(c["verify"], c["update"]) for c in program["checksums"]] == [
        (False, True),
        (True, False),
    ]
    assert {c["calculation"] for c in program["checksums"]} <= {
        c["name"] for c in program["calculations"]
    }


def test_field_lists_count_from_one(tmp_path: Path) -> None:
    program = compile_program(P4 / "v1model" / "clone_preserving.p4").json
    (fields,) = program["field_lists"]
    assert fields["id"] == 1
    assert fields["elements"] == [{"type": "field", "value": ["scalars", "metadata.kept"]}]


def test_const_entries_have_priorities_in_order() -> None:
    program = compile_program(P4 / "tables" / "const_ternary.p4").json
    table = named(named(program["pipelines"], "ingress")["tables"], "MyIngress.t")
    assert [e["priority"] for e in table["entries"]] == [1, 2, 3]
