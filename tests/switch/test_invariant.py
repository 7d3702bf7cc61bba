"""What must hold is looked at, and a process in which it does not ends with the place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from switch import build

_PROGRAM = """\
#include "traffic_manager.h"
struct sw_cells no_gate;
int main(void)
{
    struct tm_port port;
    struct pkt a = {0}, b = {0};
    ns_t start, wake;
    tm_init(&port);
    tm_put(&port, &a, 3, 100, 10);
    tm_put(&port, &b, 3, 200, 20);
    struct tm_queue *q = &port.queues[3];
    (void)q;
    SPOIL;
    return !tm_take(&port, 0, &no_gate, 30, &start, &wake) ||
           !tm_take(&port, 0, &no_gate, 40, &start, &wake);
}
"""


@pytest.mark.parametrize(
    ("spoil", "option", "says"),
    [
        ("(void)0", build.CHECKED, ""),
        ("q->bytes = 99", "", "q->bytes >= p->queued_len"),
        ("q->packets = 3", "", "!q->packets && !q->bytes"),
        ("q->bytes = 301", build.CHECKED, "is_as_counted(q)"),
        ("b.queued_len = 201", build.CHECKED, "is_as_counted(q)"),
    ],
)
def test_a_queue_that_is_not_as_counted_ends_the_process(
    spoil: str, option: str, says: str, tmp_path: Path
) -> None:
    source, program = tmp_path / "spoilt.c", tmp_path / "spoilt"
    source.write_text(_PROGRAM.replace("SPOIL", spoil))
    words = [
        *build.compiler(),
        "-std=gnu11",
        "-Wall",
        f"-I{build.RUNTIME}",
        *filter(None, [option]),
    ]
    lent = [str(build.RUNTIME / f"{name}.c") for name in ("traffic_manager", "arena")]
    made = [*words, str(source), *lent, "-o", str(program)]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not says)
    assert says in done.stderr and done.stderr.startswith("closlab: a defect" if says else "")
