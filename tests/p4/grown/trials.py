"""Where a grown program can be tried: our compiler and switch, each with the other's in its place.

`ours` is tried with packets as they are, and with each packed while it waits. `plain` is ours with
its cleverness taken away: arguments are always copied, every variable stays in its header, every
header is cleared with each packet, every number is wider than a machine's, and the C is hardly
optimised.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from compiler import compile_program
from compiler.lower.statements import Statements
from switch import build
from switch.codegen import unit
from switch.codegen.expression import Exprs
from switch.codegen.temporaries import StageVariables
from switch.dataplane import WHOLE
from switch.stf import run_stf
from tests.p4 import bmv2

from .program import Program

TRIALS = ("ours", "plain", "bmv2", "p4c")
P4C = "p4c-bm2-ss"
_WIDER = 1 << 70  # than any number of a machine


class RefusedError(Exception):
    """p4c does not take a program, or not for what it is."""


def differences(program: Program, on: str) -> list[str]:
    """What comes out otherwise than it must."""
    with tempfile.TemporaryDirectory() as folder:
        stf = Path(folder) / f"grown{program.number}.stf"
        source = stf.with_suffix(".p4")
        source.write_text(program.text())
        stf.write_text(program.test())
        match on:
            case "plain":
                with plain():
                    return run_stf(compile_program(source).json, stf).failures
            case "bmv2":
                return bmv2.run_stf(compile_program(source).json, stf).failures
            case "p4c":
                if program.is_new:
                    raise RefusedError("p4c that can be had knows no loops and no op=")
                if program.has_signed_data:
                    raise RefusedError("p4c's code takes an int<W> of an entry for a bit<W>")
                return run_stf(_by_p4c(source), stf).failures
        code = compile_program(source).json
        return [f for whole in (WHOLE, 0) for f in run_stf(code, stf, whole).failures]


def _by_p4c(source: Path) -> dict[str, Any]:
    out = source.with_suffix(".json")
    done = subprocess.run(
        [P4C, "-o", str(out), str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RefusedError(done.stderr.strip().splitlines()[0])
    made: dict[str, Any] = json.loads(out.read_text())
    return made


@contextmanager
def plain() -> Iterator[None]:
    """Without any of our optimisations."""
    usual, bind = Exprs.bound_op, Statements._bind_one

    def unknown(self: Exprs, e: Any) -> tuple[int, int]:
        low, high = usual(self, e)
        return min(low, 0) * 2 - _WIDER, max(high, 0) * 2 + _WIDER

    def copying(self: Statements, *args: Any, shared: bool) -> None:
        bind(self, *args, shared=True)

    with (
        mock.patch.object(Statements, "_bind_one", copying),
        mock.patch.object(unit, "temporaries", lambda *_: {}),
        mock.patch.object(unit, "stage_variables", lambda *_: StageVariables({}, {})),
        mock.patch.object(unit, "late_headers", lambda _: []),
        mock.patch.object(Exprs, "bound_op", unknown),
        mock.patch.object(build, "PROGRAM_FLAGS", (*build.PROGRAM_FLAGS, "-O1")),
    ):
        yield
