"""P4Info: ids, aliases, types, and what is left out."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from compiler import CompileError, compile_program
from compiler.cli import main
from compiler.p4info import Symbols, name_hash

from .programs import P4, STAGES, bench, compile_text


def router() -> Any:
    return compile_program(STAGES / "router.p4").p4info


def names(items: Any) -> list[str]:
    return [item.preamble.name for item in items]


def test_no_action_has_the_id_everybody_knows() -> None:
    assert 1 << 24 | name_hash("NoAction") & 0xFFFFFF == 21257015


def test_names_in_source_order() -> None:
    info = router()
    assert names(info.tables) == ["RouterIngress.routes", "RouterIngress.paths"]
    assert names(info.actions) == [
        "RouterIngress.drop",
        "RouterIngress.to_group",
        "RouterIngress.forward",
    ]
    assert names(info.counters) == ["RouterIngress.port_in"]
    assert names(info.direct_counters) == ["RouterIngress.route_hits"]
    assert names(info.registers) == ["RouterIngress.seen"]
    assert names(info.controller_packet_metadata) == ["packet_in", "packet_out"]


def test_ids_given_in_the_source_are_kept() -> None:
    forward = router().actions[2]
    assert [(p.name, p.id) for p in forward.params] == [("port", 2), ("mac", 1)]


def test_translated_types() -> None:
    info = router()
    port = info.actions[2].params[0]
    assert (port.bitwidth, port.type_name.name) == (32, "port_t")
    assert info.type_info.new_types["port_t"].translated_type.uri == "closlab/port"


def test_const_default_action_and_scope() -> None:
    info = router()
    drop = info.actions[0].preamble.id
    assert info.tables[0].const_default_action_id == 0
    assert info.tables[1].const_default_action_id == drop
    assert [r.scope for r in info.tables[1].action_refs] == [0, 2]


def test_brief_becomes_documentation() -> None:
    assert router().actions[0].preamble.doc.brief == "Discards the packet"


def test_direct_counter_and_table_know_each_other() -> None:
    info = router()
    assert list(info.tables[0].direct_resource_ids) == [info.direct_counters[0].preamble.id]
    assert info.direct_counters[0].direct_table_id == info.tables[0].preamble.id


def test_aliases_are_the_shortest_unique_suffixes() -> None:
    symbols = Symbols()
    for kind, name in (("table", "A.t"), ("table", "B.t"), ("action", "A.set"), ("table", "x")):
        symbols.add(kind, name)
    assert [symbols.alias(n) for n in ("A.t", "B.t", "A.set", "x")] == ["A.t", "B.t", "set", "x"]


def test_colliding_ids_move_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.p4info.name_hash", lambda _: 5)
    symbols = Symbols()
    symbols.add("table", "b")
    symbols.add("table", "a")
    symbols.settle()
    assert (symbols.id("table", "a"), symbols.id("table", "b")) == (0x02000005, 0x02000006)


def test_unused_and_hidden_things_are_left_out(tmp_path: Path) -> None:
    text = bench(
        "t.apply(); h.apply();",
        """
        action a() {} action unused() {}
        table t { actions = { a; } default_action = a(); }
        table u { actions = { unused; } default_action = unused(); }
        @hidden table h { actions = { a; } default_action = a(); }""",
    )
    info = compile_text(tmp_path, text).p4info
    assert names(info.tables) == ["MyIngress.t"]
    assert names(info.actions) == ["MyIngress.a"]


def test_an_empty_program_has_an_empty_description(tmp_path: Path) -> None:
    info = compile_text(tmp_path, bench("hdr.data.d = 1;")).p4info
    assert info.pkg_info.arch == "v1model"
    assert not info.HasField("type_info")


@pytest.mark.parametrize("suffix", ["txt", "txtpb", "bin", "json"])
def test_the_suffix_chooses_the_form(tmp_path: Path, suffix: str) -> None:
    from google.protobuf import json_format

    target = tmp_path / f"out.{suffix}"
    assert main([str(STAGES / "router.p4"), "--p4runtime-files", str(target)]) == 0
    if suffix == "bin":
        read = p4i.P4Info.FromString(target.read_bytes())
    elif suffix == "json":
        read = json_format.Parse(target.read_text(), p4i.P4Info())
    else:
        read = text_format.Parse(target.read_text(), p4i.P4Info())
    assert read == router()


IDS = """
    @id({0}) action a() {{}}
    @id({1}) table t {{ actions = {{ a; }} default_action = a(); }}"""


@pytest.mark.parametrize("given", [("7", "9"), ("0x01000007", "0x02000009"), ("7", "0x2000009")])
def test_an_id_may_leave_out_the_byte_of_its_kind(tmp_path: Path, given: tuple[str, str]) -> None:
    info = compile_text(tmp_path, bench("t.apply();", IDS.format(*given))).p4info
    assert info.actions[0].preamble.id == 0x01000007
    assert info.tables[0].preamble.id == 0x02000009
    assert info.tables[0].action_refs[0].id == 0x01000007


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("0x02000007", "9"), "write @id(0x01000007), or @id(0x7)"),
        (("7", "0x12000009"), "write @id(0x02000009), or @id(0x9)"),
        (("7", "0"), "@id takes a number"),
        (("7", '"a"'), "@id takes a number"),
    ],
)
def test_an_id_of_another_kind_is_refused(
    tmp_path: Path, given: tuple[str, str], said: str
) -> None:
    compiled = compile_text(tmp_path, bench("t.apply();", IDS.format(*given)))
    with pytest.raises(CompileError, match=re.escape(said)):
        _ = compiled.p4info


def test_an_id_is_given_once(tmp_path: Path) -> None:
    locals_ = """
        @id(7) action a() {} @id(0x01000007) action b() {}
        table t { actions = { a; b; } default_action = a(); }"""
    compiled = compile_text(tmp_path, bench("t.apply();", locals_))
    with pytest.raises(CompileError, match="given to another object"):
        _ = compiled.p4info


SELECTOR = """
    {} action_selector(HashAlgorithm.crc16, 64, 14) ways;
    action a() {{}}
    table t {{
        key = {{ hdr.data.d: selector; }} actions = {{ a; }} default_action = a();
        implementation = ways;
    }}"""


@pytest.mark.parametrize(
    ("note", "field"),
    [
        ("", None),
        ('@selector_size_semantics("sum_of_members")', "sum_of_members"),
        ('@selector_size_semantics("SUM_OF_WEIGHTS")', "sum_of_weights"),
        ('@selector_size_semantics("Sum_of_Members") @max_member_weight(9)', "sum_of_members"),
    ],
)
def test_how_a_group_is_measured_in_any_case(tmp_path: Path, note: str, field: str | None) -> None:
    (profile,) = compile_text(
        tmp_path, bench("t.apply();", SELECTOR.format(note))
    ).p4info.action_profiles
    assert profile.WhichOneof("selector_size_semantics") == field
    assert profile.sum_of_members.max_member_weight == (9 if "weight(9)" in note else 0)


def test_no_other_measure_is_known(tmp_path: Path) -> None:
    note = '@selector_size_semantics("sum_of_ways")'
    compiled = compile_text(tmp_path, bench("t.apply();", SELECTOR.format(note)))
    with pytest.raises(CompileError, match='takes "sum_of_members" or "sum_of_weights"'):
        _ = compiled.p4info


def test_defaults_are_told_as_the_control_plane_sees_them(tmp_path: Path) -> None:
    text = """
        @p4runtime_translation("", string) type bit<9> name_t;
        @p4runtime_translation("", bit<32>) type bit<9> wide_t;
        type bit<9> plain_t;
        """ + bench(
        "t.apply();",
        """
        action a(name_t n, wide_t w, plain_t p, bit<12> b) {}
        table t { actions = { a; } default_action = a((name_t)17, (wide_t)3, (plain_t)4, 5); }""",
    )
    call = compile_text(tmp_path, text).p4info.tables[0].initial_default_action
    assert [(a.param_id, a.value) for a in call.arguments] == [
        (1, b"17"),
        (2, b"\0\0\0\x03"),
        (3, b"\0\x04"),
        (4, b"\0\x05"),
    ]


def test_value_sets_tell_of_declared_types(tmp_path: Path) -> None:
    source, target = tmp_path / "sets.p4", tmp_path / "sets.bin"
    source.write_text("""
        #include <v1model.p4>
        @p4runtime_translation("", bit<32>) type bit<9> port_t;
        header h_t { bit<16> t; }
        struct headers { h_t h; }
        struct meta { bit<9> port; }
        struct key_t { bit<16> t; @match(ternary) port_t port; }
        parser p(packet_in b, out headers h, inout meta m, inout standard_metadata_t s) {
            value_set<key_t>(4) pairs;
            value_set<bit<9>>(4) ports;
            state start {
                transition select(h.h.t, m.port) { pairs: next; default: next; }
            }
            state next { transition select(m.port) { ports: accept; default: accept; } }
        }
        control c(inout headers h, inout meta m) { apply {} }
        control i(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
        control d(packet_out b, in headers h) { apply {} }
        V1Switch(p(), c(), i(), i(), c(), d()) main;
        """)
    assert main([str(source), "--p4runtime-files", str(target)]) == 0
    pairs, ports = p4i.P4Info.FromString(target.read_bytes()).value_sets
    assert [(f.name, f.bitwidth, f.type_name.name) for f in pairs.match] == [
        ("t", 16, ""),
        ("port", 32, "port_t"),
    ]
    assert [(f.bitwidth, f.type_name.name) for f in ports.match] == [(9, "")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("@x", "@x"),
        ("@x(a,b)", "@x(a , b)"),
        ("@x(a,\n     b)", "@x(a , b)"),
        ("@x(b::c, d.e)", "@x(b : : c , d . e)"),
        ("@x(@y(a/b))", "@x(@ y ( a / b ))"),
        ('@x("a  // b\\n" )', '@x("a  // b\\n")'),
        ("@x(0x10, n = 8w3)", "@x(0x10 , n = 8w3)"),
    ],
)
def test_annotations_of_others_are_told_word_by_word(
    tmp_path: Path, written: str, expected: str
) -> None:
    """As p4c tells them, which puts a space between any two words."""
    source, target = tmp_path / "noted.p4", tmp_path / "noted.bin"
    source.write_text(f"""
        #include <v1model.p4>
        {written} @controller_header("packet_in") header packet_in_t {{ bit<8> port; }}
        """)
    assert main([str(source), "--p4runtime-files", str(target)]) == 0
    (header,) = p4i.P4Info.FromString(target.read_bytes()).controller_packet_metadata
    assert [n for n in header.preamble.annotations if n.startswith("@x")] == [expected]


def test_a_library_without_main_has_its_packet_headers(tmp_path: Path) -> None:
    source, target = tmp_path / "library.p4", tmp_path / "library.bin"
    source.write_text("""
        #include <v1model.p4>
        @p4runtime_translation("", string) type bit<9> port_t;
        @controller_header("packet_in") header packet_in_t { port_t port; bit<7> pad; }
        control c(inout bit<8> x) {
            table t { key = { x: exact; } actions = { NoAction; } }
            apply { t.apply(); }
        }""")
    assert main([str(source), "--p4runtime-files", str(target)]) == 0
    info = type(router()).FromString(target.read_bytes())
    assert names(info.controller_packet_metadata) == ["packet_in"]
    port = info.controller_packet_metadata[0].metadata[0]
    assert (port.type_name.name, port.bitwidth) == ("port_t", 0)
    assert info.type_info.new_types["port_t"].translated_type.HasField("sdn_string")
    assert not info.tables
    json = tmp_path / "library.json"
    assert main([str(source), "-o", str(json)]) == 1
    assert not json.exists()


@pytest.mark.reference
@pytest.mark.parametrize("program", sorted((P4 / "programs").glob("*.p4")), ids=lambda p: p.stem)
def test_p4c_describes_programs_alike(program: Path, tmp_path: Path) -> None:
    written = tmp_path / "p4c.txt"
    command = ["p4c-bm2-ss", "--Wdisable", "-o", str(tmp_path / "p4c.json")]
    command += ["--p4runtime-files", str(written), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        assert "syntax error" in done.stderr, done.stderr
        pytest.skip("p4c 1.2.4.2 does not know all of the language")
    theirs = text_format.Parse(written.read_text(), p4i.P4Info(), allow_unknown_field=True)
    assert comparable(compile_program(program).p4info) == comparable(theirs)


def comparable(info: p4i.P4Info) -> str:
    """P4Info without what p4c 1.2.4.2 does not write yet."""
    kept = p4i.P4Info()
    kept.CopyFrom(info)
    kept.pkg_info.ClearField("platform_properties")
    del kept.pkg_info.annotations[:]
    for table in kept.tables:
        table.ClearField("initial_default_action")
        table.ClearField("has_initial_entries")
    for array in (*kept.counters, *kept.meters):
        array.ClearField("index_type_name")
    for profile in kept.action_profiles:
        profile.ClearField("sum_of_weights")
        profile.ClearField("sum_of_members")
        later = ("@selector_size_semantics", "@max_member_weight")
        notes = [n for n in profile.preamble.annotations if not n.startswith(later)]
        profile.preamble.annotations[:] = notes
    return text_format.MessageToString(kept)
