"""A register annotated @port_down: the switch keeps it, so the program can avoid dead ports."""

from pathlib import Path

import pytest

from compiler import compile_program
from switch.dataplane import Dataplane, Program, Role
from switch.stf import StfError, StfRunner

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser p(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control c(inout headers_t h, inout metadata_t m) { apply {} }
control e(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control d(packet_out b, in headers_t h) { apply {} }
@port_down register<bit<WIDTH>>(16) port_down;
control i(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        bit<WIDTH> down;
        port_down.read(down, 2);
        s.egress_spec = down == 1 ? 9w3 : 9w2;
    }
}
V1Switch(p(), c(), i(), e(), c(), d()) main;
"""


@pytest.mark.parametrize("width", [1, 8, 32, 64])
def test_packets_go_round_a_dead_port_at_once(tmp_path: Path, width: int) -> None:
    source = tmp_path / "p.p4"
    source.write_text(PROGRAM.replace("WIDTH", str(width)))
    switch = Dataplane("s", Program.load(compile_program(source).json))
    try:
        for port in (1, 2, 3):
            switch.add_port(port)
        switch.set_port_up(3, False)
        switch.share_register(Role.PORT_DOWN, 0)
        assert switch.read_register(0) == [0, 0, 0, 1] + [0] * 12  # as the ports are already
        switch.set_port_up(3, True)

        def leaves_by() -> list[int]:
            switch.inject(1, bytes(60), 0)
            return [port for port, _, _ in switch.outputs()]

        assert leaves_by() == [2]
        switch.set_port_up(2, False)
        assert switch.read_register(0, 2) == [1]
        assert leaves_by() == [3]
        switch.set_port_up(2, True)
        assert leaves_by() == [2]
        switch.remove_port(2)
        assert leaves_by() == [3]
    finally:
        switch.close()


def test_a_packet_test_takes_ports_down_and_up(tmp_path: Path) -> None:
    """Without the register shared the program goes on sending to port 2, where nothing leaves."""
    source = tmp_path / "p.p4"
    source.write_text(PROGRAM.replace("WIDTH", "1"))
    program = Program.load(compile_program(source).json)

    def failures(text: str) -> list[str]:
        return StfRunner(program, tmp_path / "t.stf").run(text).failures

    assert failures("packet 1 00\nexpect 2 00 $\nport_down 2\npacket 1 01\nno_packet") == []
    assert failures("port_down 2\nport_up 2\npacket 1 02\nexpect 2 02 $") == []
    missed = failures("port_down 2\npacket 1 03\nexpect 2 03 $")
    assert len(missed) == 1 and "port 2: expected and missing: 03" in missed[0]
    for wrong in ("port_down 511", "port_up two", "x" * 1_000_000, f"port_up {'2' * 5000}"):
        with pytest.raises(StfError, match=r"t\.stf:1: ") as caught:
            failures(wrong)
        assert len(str(caught.value)) < len(str(tmp_path)) + 500
