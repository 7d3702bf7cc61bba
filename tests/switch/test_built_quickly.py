"""A program that is built quickly does the same, and another build of it takes over unnoticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler import compile_program
from switch import build
from switch.dataplane import Dataplane, DataplaneError, Program

from .interfaces import compiled_wire

COUNTING = """
#include <core.p4>
#include <v1model.p4>
header n_t { bit<32> n; }
struct headers_t { n_t n; }
struct metadata_t {}
parser p(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { b.extract(h.n); transition accept; }
}
control c(inout headers_t h, inout metadata_t m) { apply {} }
control d(packet_out b, in headers_t h) { apply { b.emit(h.n); } }
control i(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    register<bit<32>>(1) seen;
    apply {
        seen.read(h.n.n, 0);
        h.n.n = h.n.n + 1;
        seen.write(0, h.n.n);
        s.egress_spec = 1;
    }
}
control e(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
V1Switch(p(), c(), i(), e(), c(), d()) main;
"""


@pytest.fixture(autouse=True)
def _never_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "is_built", lambda _: False)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Program]:
    source = tmp_path / "counting.p4"
    source.write_text(COUNTING)
    yield Program.load(compile_program(source).json, soon=True)


def test_only_who_wants_it_soon_has_it_built_quickly(quick: Program, tmp_path: Path) -> None:
    assert quick.is_quick
    assert not quick.built_well().is_quick
    assert quick.library != quick.built_well().library
    assert quick.built_well().library == Program.load(quick.source).library
    wire = compiled_wire(tmp_path).json
    assert not Program.load(wire).is_quick
    assert not Program.load(wire, soon=True, trace=True).is_quick


def test_one_that_is_built_well_already_is_not_built_again(
    quick: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    well = quick.built_well()
    assert Program.load(quick.source, soon=True).library == well.library


def test_a_switch_goes_on_where_it_was(quick: Program) -> None:
    with Dataplane("counting", quick) as switch:
        switch.add_port(1)
        switch.configure_port(1, rate_bps=1_000_000)  # so that what came before waits
        for number in range(12):
            if number == 6:
                switch.exchange(quick.built_well())
            switch.inject(1, bytes(60), 1000 * number)
        switch.service(10**9)
        assert [data[:4] for _, data, _ in switch.outputs()] == [
            number.to_bytes(4) for number in range(1, 13)
        ]
        assert switch.read_register(0, 0) == [12]
        assert switch.program is not quick


def test_another_program_does_not_take_over(quick: Program, tmp_path: Path) -> None:
    with Dataplane("counting", quick) as switch:
        other = Program.load(compiled_wire(tmp_path).json)
        with pytest.raises(DataplaneError, match="it is another program that runs"):
            switch.exchange(other)
        assert switch.program is quick
