"""A command by several ranks: begun together, ended together, and with one voice."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from lab.engines.sim.ranks import Launched, RankIsDone, Ranks, join
from lab.errors import LabError, RunError, of_the_machine
from lab.machine import tools

_FIRST_S = 0.5  # that rank 0 has to tell of what is wrong everywhere


@contextmanager
def joined(how: Launched, engine: str) -> Iterator[Ranks]:
    """All of them, for as long as the context lasts; what ends one of them ends all.

    Until they have agreed to begin they agree on what is wrong. From then on who fails does not
    wait for the others, which may be waiting for it.
    """
    tools.require_native()
    ranks = join(how)
    try:
        try:
            if engine != "sim":
                raise RunError(
                    f"mpirun started {how.size} of this, and --engine {engine} is for one",
                    "Say --engine sim, or leave mpirun out.",
                )
            yield ranks
        except LabError as error:
            if ranks.has_begun:
                raise
            ranks.agree(error)
    except RankIsDone:
        ranks.leave()
        raise typer.Exit(0) from None
    except BaseException as error:
        if ranks.has_left:
            raise
        _tell(error, ranks)
        ranks.abort(1)
        raise


def _tell(error: BaseException, ranks: Ranks) -> None:
    """Say why all of them end."""
    if not ranks.is_first:
        time.sleep(_FIRST_S)
    if isinstance(error, KeyboardInterrupt | typer.Exit):  # which says what was interrupted
        error = RunError("interrupted: of a run by several ranks nothing is kept until it is over")
    known = error if isinstance(error, LabError) else None
    if known is None and isinstance(error, Exception):
        known = of_the_machine(error)
    if known is None:
        traceback.print_exception(error)
    else:
        LabError(f"rank {ranks.number}: {known.message}", known.cure).show()
