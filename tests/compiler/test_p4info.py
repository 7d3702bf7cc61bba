"""P4Info: ids, aliases, types, and what is left out."""

from pathlib import Path
from typing import Any

import pytest

from compiler import compile_program
from compiler.cli import main
from compiler.p4info import Symbols, name_hash

from .programs import STAGES, bench, compile_text


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
    from finsy.proto import p4i
    from google.protobuf import json_format, text_format

    target = tmp_path / f"out.{suffix}"
    assert main([str(STAGES / "router.p4"), "--p4runtime-files", str(target)]) == 0
    if suffix == "bin":
        read = p4i.P4Info.FromString(target.read_bytes())
    elif suffix == "json":
        read = json_format.Parse(target.read_text(), p4i.P4Info())
    else:
        read = text_format.Parse(target.read_text(), p4i.P4Info())
    assert read == router()
