"""Many runs over a Dask cluster: one of this machine's own, or one that is there already.

What a worker that is lost had not finished is done by others; a run that takes several workers with
it is told as failed, and the others go on.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from lab.errors import MissingTool, RunError
from lab.machine.parallel import own_semaphores, without_main
from lab.machine.scratch import scratch
from lab.machine.stopped import telling_of_stopped
from lab.progress import Stage, Stages

if TYPE_CHECKING:
    import distributed

J = TypeVar("J")
R = TypeVar("R")

LOCAL = "dask"  # in place of an address
_LOOK_S = 0.2  # between two looks at whether to go on
_MEETS_S = 15.0
_TELL_S = 5.0  # between two words on what is waited for
_SILENT_S = 10.0  # that a worker may be, which tells of itself each second or so
_WORKERS_S = 120.0  # that a scheduler may be without any


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
        stack.enter_context(telling_of_stopped())
        stack.enter_context(_in_our_words())
        if where == LOCAL:
            most = min(len(jobs), processes or os.cpu_count() or 1)
            where = stack.enter_context(of_this_machine(most))
        try:
            # Its time-out is not for a scheduler that takes a connection and says nothing.
            with _telling(f"the Dask scheduler at {where}", stages):
                client = stack.enter_context(distributed.Client(where, timeout=_MEETS_S))
        except (OSError, ValueError) as error:
            raise RunError(
                f"no Dask scheduler answers at {where}: {error}",
                "An address is such as tcp://host:8786; 'dask' makes a cluster here.",
            ) from None
        present = _Workers(client, where, stages)
        workers = present.await_some()
        with stages(f"Running on Dask, {workers} workers", len(jobs)) as stage:
            yield from _done(client, work, jobs, present, stage)
            stage.note = f"{len(jobs)} runs"


@contextmanager
def of_this_machine(workers: int) -> Iterator[str]:
    """A cluster of this machine's own, by its address, for as long as the context lasts."""
    import dask.config
    import distributed

    with ExitStack() as stack:
        stack.enter_context(_in_our_words())
        folder = stack.enter_context(scratch())
        stack.enter_context(dask.config.set({"temporary-directory": str(folder)}))
        stack.enter_context(own_semaphores())
        with without_main(), _starting():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,  # all that is lost is told here
                )
            )
        yield cluster.scheduler_address


@contextmanager
def _starting() -> Iterator[None]:
    """Say in one message that a cluster of this machine's own does not start."""
    try:
        with warnings.catch_warnings():  # another cluster is at work here, which is as well
            warnings.filterwarnings("ignore", message=r"\s*Port \d+ is already in use")
            yield
    except RuntimeError as error:
        why = error.__cause__ or error
        raise RunError(
            f"Dask's workers did not start here: {why}",
            "Was one of them killed? Fewer at a time need less: --processes 1",
        ) from None


@contextmanager
def _telling(whom: str, stages: Stages) -> Iterator[None]:
    """Say now and then, for as long as the context lasts, who is waited for."""
    over, began = threading.Event(), time.monotonic()

    def tell() -> None:
        while not over.wait(_TELL_S):
            stages.still_waiting(whom, time.monotonic() - began)

    threading.Thread(target=tell, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Dask's own log is still meanwhile: what is lost is told here, once."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _done(
    client: distributed.Client,
    work: Callable[[J], R],
    jobs: Sequence[J],
    present: _Workers,
    stage: Stage,
) -> Iterator[tuple[J, R | str]]:
    """Hand them out, and take what comes back."""
    import distributed

    futures = {client.submit(work, job, pure=False): job for job in jobs}
    pending = set(futures)
    try:
        while pending:
            try:
                done = distributed.wait(pending, _LOOK_S, "FIRST_COMPLETED").done
                results = {future: _result(future) for future in done}
            except TimeoutError:  # or a result is gone with its worker, and made again
                stage.look()
                present.look()
                continue
            except distributed.CancelledError:  # by nobody but one who has lost it
                raise present.lost() from None
            pending -= done
            for future, result in results.items():
                yield futures[future], result
                stage.advance()
    finally:
        if client.status == "running":
            client.cancel(list(pending))


def _result(future: distributed.Future) -> Any:
    """What came of one that is done, or how it failed."""
    failure = future.exception(timeout=_TELL_S)
    return future.result(timeout=_TELL_S) if failure is None else str(failure)


class _Workers:
    """A scheduler's, without which nothing goes on: they may come and go, it may not."""

    def __init__(self, client: distributed.Client, where: str, stages: Stages) -> None:
        self._client, self._where, self._stages = client, where, stages
        self._without_since: float | None = None
        self._silent_since: float | None = None
        self._reported_at = 0.0
        self._heard: dict[str, tuple[float, float]] = {}  # by worker: what it said last, and when

    def await_some(self) -> int:
        """How many there are, once there are any."""
        while not (number := self.look()):
            time.sleep(_LOOK_S)
        return number

    def look(self) -> int:
        """How many there are; fails if there have been none for too long, and tells it before."""
        now = time.monotonic()
        if (number := self._number()) is None:
            return 0
        if number:
            self._without_since = None
            return number
        if self._without_since is None:
            self._without_since, self._reported_at = now, now
        waited_s = now - self._without_since
        if waited_s > _WORKERS_S:
            raise RunError(
                f"the Dask scheduler at {self._where} has had no workers for {waited_s:.0f} s",
                f"Start some:  dask worker {self._where}",
            )
        if now - self._reported_at > _TELL_S:
            self._reported_at = now
            self._stages.still_waiting(f"workers of the Dask scheduler at {self._where}", waited_s)
        return 0

    def _number(self) -> int | None:
        """How many the scheduler knows; nothing if it does not say, which is told."""
        client = self._client
        try:
            asked = client.scheduler.identity
            workers = client.sync(asked, n_workers=-1, callback_timeout=_TELL_S)
        except TimeoutError:
            now = time.monotonic()
            self._silent_since = self._silent_since or now - _TELL_S
            waited_s = now - self._silent_since
            self._stages.still_waiting(f"the Dask scheduler at {self._where}", waited_s)
            return None
        except OSError:
            raise self.lost() from None
        self._silent_since = None
        self._mind(workers["workers"])
        return len(workers["workers"])

    def _mind(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Tell of workers that the scheduler has not heard of for long: it waits for them, too.

        By our own clock, for theirs may be another."""
        now, before = time.monotonic(), self._heard
        self._heard = {
            address: before[address]
            if address in before and before[address][0] == each["last_seen"]
            else (each["last_seen"], now)
            for address, each in workers.items()
        }
        silent = {name: now - since for name, (_, since) in self._heard.items()}
        late = {name: took for name, took in silent.items() if took > _SILENT_S}
        if late and now - self._reported_at > _TELL_S:
            self._reported_at = now
            name = max(late, key=lambda each: late[each])
            self._stages.still_waiting(f"Dask's worker at {name} to be heard of", late[name])

    def lost(self) -> RunError:
        """What to say when it is gone."""
        return RunError(
            f"the Dask scheduler at {self._where} was lost, and with it what its workers were at",
            "Was it ended, or killed? What each run that was over has kept is in its folder.",
        )
