"""Many runs over a Dask cluster: one of this machine's own, or one that is there already.

What a worker that is lost had not finished is done by others; a run that takes several workers with
it is told as failed, and the others go on.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

from lab.errors import MissingTool, RunError
from lab.machine.parallel import without_main
from lab.progress import Stages

J = TypeVar("J")
R = TypeVar("R")

LOCAL = "dask"  # in place of an address
_LOOK_S = 0.2  # between two looks at whether to go on
_MEETS_S = 15.0


def require_dask() -> None:
    """Fail with what to install, if Dask is not there."""
    if importlib.util.find_spec("distributed") is None:
        raise MissingTool(
            "Dask's distributed is not installed",
            "The launcher brings it (./closlab sweep --on dask); in an environment of your own:  "
            "pip install 'closlab[dask]'",
        )


def on_dask(
    work: Callable[[J], R], jobs: Sequence[J], where: str, processes: int | None, stages: Stages
) -> Iterator[tuple[J, R | str]]:
    """Each job with what came of it, or how it failed; ``work`` is a function of a module."""
    import distributed

    with ExitStack() as stack:
        if where == LOCAL:
            with without_main():
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=min(len(jobs), processes or os.cpu_count() or 1),
                        threads_per_worker=1,
                        dashboard_address=None,
                        silence_logs=logging.ERROR,
                    )
                )
                client = stack.enter_context(distributed.Client(cluster))
        else:
            try:
                client = stack.enter_context(distributed.Client(where, timeout=_MEETS_S))
            except (OSError, ValueError) as error:
                raise RunError(
                    f"no Dask scheduler answers at {where}: {error}",
                    "An address is such as tcp://host:8786; 'dask' makes a cluster here.",
                ) from None
        workers = len(client.scheduler_info()["workers"])
        with stages(f"Running on Dask, {workers} workers", len(jobs)) as stage:
            futures = {client.submit(work, job, pure=False): job for job in jobs}
            stack.callback(client.cancel, list(futures))
            pending = set(futures)
            while pending:
                try:
                    done = distributed.wait(pending, _LOOK_S, "FIRST_COMPLETED").done
                except TimeoutError:
                    stage.look()
                    continue
                pending -= done
                for future in done:
                    failure = future.exception()
                    yield futures[future], future.result() if failure is None else str(failure)
                    stage.advance()
            stage.note = f"{len(jobs)} runs"
