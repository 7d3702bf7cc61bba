"""What one packet may cost: a loop that does not end is left, and its packet alone is lost."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compiler import compile_program
from switch.dataplane import Dataplane, Program

from .programs import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent / "p4" / "loops.p4"
MAX = 65536
# Ingress and egress, each a loop that runs within an action, and one of a table.
ACTION = (0, 1)
TABLE = (2, 3)


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane("loops", compiled(SOURCE)) as dataplane:
        dataplane.add_port(1)
        dataplane.add_port(2)
        yield dataplane


def taken(switch: Dataplane, where: int, outer: int, inner: int = 1, step: int = 1) -> int | None:
    """The turns a packet says it took; None if it was lost."""
    switch.inject(1, struct.pack(">BIIBI", where, inner, outer, step, 0), 1000)
    sent = switch.outputs()
    stats = switch.stats()
    assert stats.received == stats.sent + sum(stats.drops.values())
    return int(struct.unpack(">BIIBI", sent[0][1][:14])[4]) if sent else None


@pytest.mark.parametrize("where", [*ACTION, *TABLE])
def test_loops_that_end(switch: Dataplane, where: int) -> None:
    for turns in (0, 1, 7, 1000):
        assert taken(switch, where, turns) == turns
    # A turn of the outer loop is one, and so is that of the inner one.
    most = MAX if where in TABLE else MAX // 2
    assert taken(switch, where, most) == most
    assert taken(switch, where, most + 1) is None
    assert switch.stats().drops == {"endless_loop": 1}


@pytest.mark.parametrize("where", [*ACTION, *TABLE])
def test_a_loop_without_an_end_costs_its_packet_alone(switch: Dataplane, where: int) -> None:
    """It takes about as long as the longest loop that ends, which is measured beside it."""
    start = time.process_time()
    assert taken(switch, where, MAX // 2) == MAX // 2
    allowed = time.process_time() - start
    start = time.process_time()
    for _ in range(3):
        assert taken(switch, where, 5, 5, step=0) is None
    assert time.process_time() - start < 100 * allowed + 1
    assert switch.stats().drops == {"endless_loop": 3}
    assert taken(switch, where, 5) == 5, "the next packet is none the worse"


@pytest.mark.parametrize("where", ACTION)
def test_loops_within_loops_count_together(switch: Dataplane, where: int) -> None:
    assert taken(switch, where, 200, 200) == 40_000
    assert taken(switch, where, 300, 300) is None
    assert switch.stats().drops == {"endless_loop": 1}


def test_a_table_that_follows_itself(tmp_path: Path) -> None:
    """No compiler writes such JSON."""
    code = compile_program(SOURCE).json
    for pipeline in code["pipelines"]:
        for table in pipeline["tables"]:
            if table["name"].endswith("each"):
                table["base_default_next"] = table["name"]
                table["next_tables"] = dict.fromkeys(table["next_tables"], table["name"])
    path = tmp_path / "cycle.json"
    path.write_text(json.dumps(code))
    with Dataplane("cycle", Program.load(path)) as switch:
        switch.add_port(1)
        switch.add_port(2)
        assert taken(switch, 2, 3) is None
        assert taken(switch, 0, 3) == 3
        assert switch.stats().drops == {"endless_loop": 1}
