"""One controller for all switches: connects, pushes the program, installs, reads.

All switches are worked on at once. A switch that already runs the program keeps it, so a
controller may come and go without a packet noticing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import traceback
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import finsy as fy
from finsy import p4client
from finsy.gnmiclient import GNMIClientError
from finsy.proto import p4i
from finsy.proto.stratum1.p4_role_config_pb2 import P4RoleConfig
from google.protobuf import text_format

from controller.entities import Changes, DefaultAction, Entity, SwitchPlan, changes
from controller.errors import ControllerError
from controller.wire import canonical, from_finsy, to_finsy
from params.data import Data

_T = TypeVar("_T")


def _plain(record: logging.LogRecord) -> bool:
    """Of a task that failed finsy shows a traceback: here that is told in words, and not at all if
    nobody wants it any longer."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, fy.P4ClientError):
        record.msg, record.args = f"{record.getMessage()}: {error}", ()
        record.exc_info = None
        return error.code is not fy.GRPCStatusCode.CANCELLED
    return True


# finsy tells of every switch that offers no gNMI; what matters is raised as an exception.
logging.getLogger("finsy").setLevel(logging.ERROR)
logging.getLogger("finsy").addFilter(_plain)

_ENTITIES_PER_WRITE = 512
ANSWER_S = 60.0  # that a switch may take for all it is asked: it may have to compile the program
PRIMARY_S = 10.0  # that a connection before may take to be gone
# finsy gives every single call ten seconds; how long to wait is decided here, for all of them.
p4client._DEFAULT_RPC_TIMEOUT = 3600.0


class Tls(Data):
    """What proves a switch to the controller; with a certificate of its own, also the reverse."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None


class Target(Data):
    """A switch as the controller sees it."""

    name: str
    address: str  # host:port of its P4Runtime server
    device_id: int
    p4info: Path
    program: Path
    tls: Tls | None = None  # None: in the clear


def install(
    targets: Iterable[Target],
    plans: Mapping[str, SwitchPlan],
    done: Callable[[str], None] = lambda _: None,
    *,
    answer_s: float = ANSWER_S,
) -> dict[str, int]:
    """See to it that every switch runs the program and has its plan, and no more than that.

    What a switch already has right is not touched. ``done`` hears of each switch that is ready;
    returned is how many entities had to be changed. A slow machine needs a longer ``answer_s``.
    """

    async def install_one(target: Target) -> tuple[str, int]:
        async with connected(target) as switch:
            changed = await reconcile(switch, plans[target.name])
            done(target.name)
        return target.name, len(changed)

    return dict(on_all(targets, install_one, answer_s))


async def reconcile(switch: fy.Switch, plan: SwitchPlan) -> Changes:
    """Compare what a switch has with its plan, and write the difference."""
    wanted = canonical(plan, switch.p4info)
    difference = changes(await read_plan(switch, wanted), wanted)
    await write_changes(switch, difference)
    return difference


async def write_changes(switch: fy.Switch, difference: Changes) -> None:
    """Write a difference, in batches: what is referred to before what refers to it."""
    writes = writes_of(difference)
    for at in range(0, len(writes), _ENTITIES_PER_WRITE):
        await switch.write(writes[at : at + _ENTITIES_PER_WRITE])


def writes_of(difference: Changes) -> tuple[Any, ...]:
    """A difference in finsy's words, in the order in which it can be written."""
    return (
        *(+to_finsy(entity) for entity in difference.add if not _is_default(entity)),
        *(~to_finsy(entity) for entity in difference.add if _is_default(entity)),
        *(~to_finsy(entity) for entity in difference.change),
        *(-to_finsy(entity) for entity in difference.remove),
    )


def queries_of(wanted: SwitchPlan) -> list[Any]:
    """What to read to know what a switch has of a plan's kinds, in finsy's words."""
    return [
        fy.P4TableEntry(),
        fy.P4MulticastGroupEntry(),
        fy.P4CloneSessionEntry(),
        *(
            fy.P4TableEntry(entity.table, is_default_action=True)
            for entity in wanted
            if isinstance(entity, DefaultAction)
        ),
    ]


async def read_plan(switch: fy.Switch, wanted: SwitchPlan = ()) -> SwitchPlan:
    """Everything of a plan's kinds that a switch has."""
    # finsy declares the overloads of read() as coroutines; what it returns is a generator.
    answers = switch.read(queries_of(wanted))
    found = [from_finsy(entity) async for entity in answers]  # type: ignore[attr-defined]
    return tuple(entity for entity in found if entity is not None)


def read_plans(
    targets: Iterable[Target], wanted: Mapping[str, SwitchPlan] | None = None
) -> dict[str, SwitchPlan]:
    """Everything that switches have been told; of defaults those that are wanted of them."""
    sought = wanted or {}

    async def read_one(target: Target) -> SwitchPlan:
        async with reading(target) as switch:
            return await read_plan(switch, sought.get(target.name, ()))

    targets = tuple(targets)
    plans = on_all(targets, read_one)
    return {target.name: plan for target, plan in zip(targets, plans, strict=True)}


def _is_default(entity: Entity) -> bool:
    return isinstance(entity, DefaultAction)


@asynccontextmanager
async def connected(
    target: Target, role: str = "", tables: Sequence[str] = ()
) -> AsyncIterator[fy.Switch]:
    """A connection that may write; the program is pushed if the switch has it not.

    Every role has a primary of its own, so two of them may write side by side: one that has a name
    to tables that it shares with all. A connection that has just been ended may still be primary
    where the switch has not heard of it: that is waited for. Whoever stays primary meanwhile is
    another controller, and the switch will say so when asked to change anything.
    """
    primary = asyncio.Event()

    async def ready(switch: fy.Switch) -> None:
        if switch.is_primary:
            primary.set()

    config = None
    if role:
        found = fy.P4Schema(_p4info(target)).tables
        config = P4RoleConfig(shared_p4_ids=[found[name].id for name in tables])
    options = replace(_options(target), role_name=role, role_config=config, ready_handler=ready)
    async with fy.Switch(target.name, target.address, options) as switch:
        with suppress(TimeoutError):
            await asyncio.wait_for(primary.wait(), PRIMARY_S)
        yield switch


def reading(target: Target) -> fy.Switch:
    """A connection that only reads, whoever is primary."""
    return fy.Switch(target.name, target.address, _options(target))


def _options(target: Target) -> fy.SwitchOptions:
    tls = target.tls
    credentials = None
    if tls is not None:
        credentials = fy.GRPCCredentialsTLS(
            cacert=tls.authority, cert=tls.certificate, private_key=tls.key
        )
    return fy.SwitchOptions(
        p4info=_p4info(target),  # type: ignore[arg-type] # P4Schema takes both
        p4blob=target.program,
        device_id=target.device_id,
        channel_credentials=credentials,
    )


def _p4info(target: Target) -> p4i.P4Info:
    return _parsed(target.p4info.read_text())


@lru_cache(maxsize=4)
def _parsed(text: str) -> p4i.P4Info:
    """One for all switches that run it: to read a text takes longer than to connect to one."""
    return text_format.Parse(text, p4i.P4Info())


def result_of(task: asyncio.Future[_T], target: Target) -> _T:
    """What work at a switch came to, or in our words why it failed."""
    try:
        return task.result()
    except (fy.P4ClientError, GNMIClientError) as error:
        raise ControllerError(f"{target.name} at {target.address} refused: {error}") from error
    except (asyncio.CancelledError, AssertionError) as error:
        # finsy's ways of saying that its own task has failed, and that its connection is closed.
        if isinstance(error, AssertionError) and not _is_finsys(error):
            raise
        raise ControllerError(
            f"{target.name} at {target.address} broke off; is its switch process running?"
        ) from None


def _is_finsys(error: Exception) -> bool:
    """Whether it was raised in finsy's own code."""
    frames = traceback.walk_tb(error.__traceback__)
    *_, (last, _) = frames
    return str(last.f_globals.get("__name__", "")).startswith("finsy.")


def on_all(
    targets: Iterable[Target],
    work: Callable[[Target], Awaitable[_T]],
    answer_s: float = ANSWER_S,
) -> list[_T]:
    """Work on all switches at once; the first failure names its switch."""

    async def one(target: Target) -> _T:
        # A task of its own: finsy does not let a cancellation from outside through.
        task = asyncio.ensure_future(work(target))
        done, _ = await asyncio.wait({task}, timeout=answer_s)
        if not done:
            task.cancel()
            raise ControllerError(
                f"{target.name} at {target.address} did not answer within "
                f"{answer_s:g} s; is its switch process running?"
            )
        return result_of(task, target)

    async def all_of_them() -> list[_T]:
        return list(await asyncio.gather(*(one(target) for target in targets)))

    return done(all_of_them())


# By process: where gRPC hears of something it may hand it to any loop it has met, closed or not, so
# there is but one, and it lasts as long as the process.
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def speaking() -> asyncio.AbstractEventLoop:
    """The event loop that speaks P4Runtime, in a thread of its own."""
    if os.getpid() not in _loops:
        _loops.clear()
        loop = _loops[os.getpid()] = asyncio.new_event_loop()
        loop.set_exception_handler(_complain)
        threading.Thread(target=loop.run_forever, name="p4runtime", daemon=True).start()
    return _loops[os.getpid()]


def _complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Of what nobody heard: not of a connection's end, for which nobody waits any more."""
    if not isinstance(context.get("exception"), (fy.P4ClientError, GNMIClientError)):
        loop.default_exception_handler(context)


def done(work: Coroutine[Any, Any, _T]) -> _T:
    """Have it done there, and wait for it; what breaks the waiting off ends it too."""
    future = asyncio.run_coroutine_threadsafe(work, speaking())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
