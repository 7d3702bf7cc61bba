"""What egress clones to another port leaves in the same service, whichever port is served first."""

import re
from pathlib import Path

import pytest

from compiler import compile_program
from switch import build
from switch.dataplane import CloneWrite, Dataplane, Program, Replica, Verb

(TURNS_MAX,) = map(
    int, re.findall(r"#define SW_TURNS_MAX (\d+)", (build.RUNTIME / "sw.h").read_text())
)
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser p(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control c(inout headers_t h, inout metadata_t m) { apply {} }
control d(packet_out b, in headers_t h) { apply {} }
control i(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = s.ingress_port; }
}
control e(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { if (s.instance_type == 0) { clone(CloneType.E2E, 7); } }
}
V1Switch(p(), c(), i(), e(), c(), d()) main;
"""


@pytest.mark.parametrize(("original", "copy"), [(9, 1), (1, 9), (300, 1), (3, 3)])
def test_the_copy_does_not_wait_for_the_next_packet(
    tmp_path: Path, original: int, copy: int
) -> None:
    source = tmp_path / "p.p4"
    source.write_text(PROGRAM)
    switch = Dataplane("s", Program.load(compile_program(source).json))
    try:
        for port in {original, copy}:
            switch.add_port(port)
        switch.write([CloneWrite(Verb.INSERT, 7, (Replica(copy, 1),))])
        switch.inject(original, bytes(60), 0)
        assert sorted(port for port, _, _ in switch.outputs()) == sorted([original, copy])
    finally:
        switch.close()


def test_a_program_that_clones_for_ever_does_not_hang_the_switch(tmp_path: Path) -> None:
    source = tmp_path / "p.p4"
    source.write_text(PROGRAM.replace("if (s.instance_type == 0)", ""))
    switch = Dataplane("s", Program.load(compile_program(source).json))
    try:
        for port in (1, 2):
            switch.add_port(port)
        switch.write([CloneWrite(Verb.INSERT, 7, (Replica(2, 1),))])
        switch.inject(1, bytes(60), 0)
        assert switch.service(1) == 2  # there is more to do, a moment later
        stats = switch.stats()
        assert 0 < stats.copies <= 2 * (TURNS_MAX + 1)  # when it came, and when it was served
        assert stats.received + stats.copies == stats.sent + sum(stats.drops.values()) + stats.held
    finally:
        switch.close()
