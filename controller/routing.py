"""Follows routing daemons: what they tell of routes becomes entries of the switches' tables.

A switch's daemon connects to a socket of its own and speaks the FPM protocol (`fpm.py`); what it
told is kept in a `Rib`, and whenever that changed the switch is told the difference, in one write.
All switches are followed over connections that stay: they bid as a P4Runtime role of their own, so
that whoever installs plans, or a shell, is not kept from it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from typing import Any

import finsy as fy

from controller.client import (
    Target,
    connected,
    done,
    read_plan,
    result_of,
    speaking,
    write_changes,
)
from controller.entities import Entity, SwitchPlan, TableEntry, changes
from controller.errors import ControllerError
from controller.fdb import Fdb
from controller.fpm import FpmError, Reader
from controller.kernel import View
from controller.netlink import NetlinkError
from controller.rib import Rib
from controller.routes import Route
from controller.settings import Settings
from controller.tables import ROUTING, Groups, SwitchSite, routed, routing, switch_plan
from controller.tenants import OWN_ACTIONS, Far, far_entries
from controller.wire import canonical
from params.data import Data

ROLE = "routing"
STALE_S = 30.0  # that routes are kept while nobody vouches for them
_TOGETHER_S = 0.005  # what is told within goes into one write
_AGAIN_S = 0.2  # until a write that was refused is tried again
_PIECE = 1 << 16

log = logging.getLogger(__name__)


class Change(Data):
    """What a switch was told at a moment, by the machine's monotonic clock."""

    at_ns: int
    switch: str
    entities: int


class Followed(Data, frozen=False):
    """One switch, its daemon, and what it has of what that told."""

    site: SwitchSite
    target: Target
    listener: socket.socket  # where the daemon connects
    rib: Rib
    own: tuple[Route, ...]  # what needs no daemon: the hosts at its ports
    underlay: View | None = None  # where the kernel tells of its routes, if zebra does not
    evpn: Sequence[tuple[Fdb, View]] = ()  # what EVPN found of tenants, and who tells
    groups: Groups = field(default_factory=dict)
    present: SwitchPlan = ()
    installed: tuple[Route, ...] = ()  # the routes that a switch has,
    installed_far: Far = field(default_factory=Far)  # and what of tenants elsewhere
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time

    def routes(self) -> tuple[Route, ...]:
        """All that is known."""
        return (*self.own, *self.rib.routes())

    def far(self) -> Far:
        """What EVPN found of tenants elsewhere."""
        found = [fdb for fdb, _ in self.evpn]
        return Far(
            tuple(prefix for fdb in found for prefix in fdb.prefixes()),
            tuple(mac for fdb in found for mac in fdb.macs()),
            tuple(member for fdb in found for member in fdb.members()),
        )

    def entities(self, routes: tuple[Route, ...], far: Far) -> Iterator[Entity]:
        """What a switch gets of these."""
        yield from routing(self.site, routes, self.groups)
        yield from far_entries(self.site.fabric, self.site.switch, far)

    def plan(self, routes: tuple[Route, ...], far: Far) -> SwitchPlan:
        """All that a switch gets, of these and of everything else."""
        site = self.site
        return switch_plan(site.fabric, site.switch, routes, site.settings, self.groups, far=far)

    async def take_over(self, switch: fy.Switch) -> None:
        """Go on from what a switch has: what its daemon told who followed it before.

        What the kernel tells is asked for; what zebra does counts until that has told it again.
        """
        self.present = _of_routing(await read_plan(switch))
        self.installed, groups = routed(self.present)
        self.groups.update(groups)
        if self.underlay is None:
            own = {route.prefix for route in self.own}
            self.rib.adopt(route for route in self.installed if route.prefix not in own)
        else:
            self.rib.learn_anew(self.underlay.everything())
        for fdb, view in self.evpn:
            fdb.learn_anew(view.everything())

    def views(self) -> Iterator[tuple[View, Callable[[], bool]]]:
        """Where the kernel tells of something, and who is to hear it; whether it was new."""
        if self.underlay is not None:
            yield self.underlay, partial(self.hear_underlay, self.underlay)
        for fdb, view in self.evpn:
            yield view, partial(self.hear, fdb, view)

    def hear_underlay(self, view: View) -> bool:
        """The same of the switch's own routes."""
        try:
            view.tell(self.rib.hear_kernel, self.rib.learn_anew)
        except (NetlinkError, OSError) as error:
            log.warning("what is routed at %s is not understood: %s", self.target.name, error)
        return True

    def hear(self, fdb: Fdb, view: View) -> bool:
        """Take in what the kernel tells; whether it was new. What was lost is asked for."""
        try:
            return view.tell(fdb.hear, fdb.learn_anew)
        except (NetlinkError, OSError) as error:
            log.warning("what EVPN found at %s is not understood: %s", self.target.name, error)
            return False


class Routing:
    """Follows the daemons of all switches of a fabric, until it is stopped.

    All that it knows belongs to the loop that speaks P4Runtime; others ask for it.
    """

    def __init__(self, followed: Mapping[str, Followed], changed: Callable[[Change], None]) -> None:
        self._followed = followed
        self._changed = changed
        self._daemons: dict[str, _Daemon] = {}
        self._stopping = asyncio.Event()
        self._following: Future[None] | None = None

    # --- from other threads -----------------------------------------------------------------------

    def start(self) -> None:
        """Follow from now on."""
        self._following = asyncio.run_coroutine_threadsafe(self._follow_all(), speaking())

    def stop(self) -> None:
        """Follow no more; what switches have stays."""
        if self._following is not None:
            speaking().call_soon_threadsafe(self._stopping.set)
            with suppress(Exception):  # which `failure` tells
                self._following.result()

    @property
    def failure(self) -> str | None:
        """Why nobody is followed any more, if that was not meant."""
        following = self._following
        error = following.exception() if following is not None and following.done() else None
        return None if error is None else str(error) or type(error).__name__

    def routes(self) -> dict[str, tuple[Route, ...]]:
        """What switches have installed, by their names."""

        async def read() -> dict[str, tuple[Route, ...]]:
            return {name: each.installed for name, each in self._followed.items()}

        return done(read())

    def far(self) -> dict[str, Far]:
        """What they have installed of tenants elsewhere."""

        async def read() -> dict[str, Far]:
            return {name: each.installed_far for name, each in self._followed.items()}

        return done(read())

    def plans(self) -> dict[str, SwitchPlan]:
        """Every switch's whole plan, with the routes that it has installed."""

        async def made() -> dict[str, SwitchPlan]:
            return {
                name: each.plan(each.installed, each.installed_far)
                for name, each in self._followed.items()
            }

        return done(made())

    def spare(self, name: str) -> None:
        """A switch's BGP starts again: what it knew counts until it knows more."""
        if name in self._daemons:
            speaking().call_soon_threadsafe(self._daemons[name].starts_again)

    def install(
        self, settings: Settings, install: Callable[[dict[str, SwitchPlan]], object]
    ) -> None:
        """Let whole plans be installed, with the routes that are known by now.

        Meanwhile no switch is told anything else.
        """
        plans = done(self._hold(settings))
        try:
            install(plans)
        finally:
            done(self._release())

    # --- in the loop ------------------------------------------------------------------------------

    async def _hold(self, settings: Settings) -> dict[str, SwitchPlan]:
        plans = {}
        for name, each in self._followed.items():
            await each.writing.acquire()
            each.site = SwitchSite(each.site.fabric, each.site.switch, settings)
            routes, far = each.routes(), each.far()
            plans[name] = each.plan(routes, far)
            each.present = tuple(each.entities(routes, far))
            each.installed, each.installed_far = routes, far
        return plans

    async def _release(self) -> None:
        for each in self._followed.values():
            each.writing.release()

    async def _follow_all(self) -> None:
        tasks = {
            asyncio.ensure_future(self._follow(each)): each.target
            for each in self._followed.values()
        }
        stopping = asyncio.ensure_future(self._stopping.wait())
        ended, _ = await asyncio.wait({*tasks, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, stopping):
            task.cancel()
        await asyncio.gather(*tasks, stopping, return_exceptions=True)
        for task, target in tasks.items():
            if task in ended:
                _fail_with(task, target)

    async def _follow(self, each: Followed) -> None:
        news = _News()
        daemon = self._daemons[each.site.switch.name] = _Daemon(each.rib, news)
        async with connected(each.target, ROLE, ROUTING) as switch:
            if not each.present:
                async with each.writing:
                    await each.take_over(switch)
                if each.underlay is None:
                    daemon.starts_again()
            server = await asyncio.start_server(daemon.serve, sock=each.listener)
            loop = asyncio.get_running_loop()
            for view, hear in each.views():
                loop.add_reader(view.news, partial(news.take, hear))
            try:
                while True:
                    await news.come()
                    async with each.writing:
                        await self._tell(each, switch, news)
            finally:
                for view, _ in each.views():
                    loop.remove_reader(view.news)
                server.close()
                daemon.close()

    async def _tell(self, each: Followed, switch: fy.Switch, news: _News) -> None:
        """Tell a switch what is new; if it refuses, find out what it has, and try again soon."""
        try:
            routes, far = each.routes(), each.far()
            wanted = canonical(each.entities(routes, far), switch.p4info)
            present = canonical(each.present, switch.p4info)
            difference = changes(present, wanted)
            if len(difference):
                await write_changes(switch, difference)
                self._changed(Change(time.monotonic_ns(), each.site.switch.name, len(difference)))
            each.present, each.installed, each.installed_far = wanted, routes, far
        except fy.P4ClientError as error:
            log.warning("%s refused: %s", each.target.name, error)
            with suppress(fy.P4ClientError):
                each.present = _of_routing(await read_plan(switch))
            asyncio.get_running_loop().call_later(_AGAIN_S, news.set)


def _fail_with(task: asyncio.Future[Any], target: Target) -> None:
    """Fail as it did; of a defect of ours all that is known is said."""
    try:
        result_of(task, target)
    except ControllerError:
        raise
    except Exception as error:
        log.critical("nobody follows the routing daemons any more", exc_info=error)
        raise


class _News:
    """That something is new; or that who took it in has failed, which fails who waits for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._error: BaseException | None = None

    def set(self) -> None:
        """There is something."""
        self._event.set()

    def take(self, take: Callable[[], bool]) -> None:
        """Take something in, which may be new."""
        with self.taken():
            if take():
                self.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """While something is taken in, which nobody else waits for."""
        try:
            yield
        except Exception as error:
            self._error = error
            self.set()

    async def come(self) -> None:
        """Until there is something, and what is told together with it."""
        await self._event.wait()
        await asyncio.sleep(_TOGETHER_S)
        self._event.clear()
        if self._error is not None:
            raise self._error


def _of_routing(found: SwitchPlan) -> SwitchPlan:
    """What of a switch's entries is ours: that an address is its own, it knows from its plan."""
    return tuple(
        entity
        for entity in found
        if isinstance(entity, TableEntry) and entity.action not in ("to_control", *OWN_ACTIONS)
    )


class _Daemon:
    """A switch's daemon, as it comes and goes."""

    def __init__(self, rib: Rib, news: _News) -> None:
        self._rib, self._news = rib, news
        self._sweep: asyncio.TimerHandle | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take in what it tells, until it is gone."""
        self._writers.add(writer)
        messages = Reader()
        with self._news.taken():
            try:
                while data := await reader.read(_PIECE):
                    for message in messages.feed(data):
                        self._rib.hear(message)
                    self._news.set()
            except (FpmError, OSError) as error:
                log.warning("a routing daemon is not understood: %s", error)
            finally:
                self._writers.discard(writer)
                writer.close()
                self.starts_again(forgets_sets=True)

    def starts_again(self, *, forgets_sets: bool = False) -> None:
        """Keep what it told for a while."""
        self._rib.grow_stale(forgets_sets=forgets_sets)
        if self._sweep is not None:
            self._sweep.cancel()
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(STALE_S, self._news.take, self._forget)

    def _forget(self) -> bool:
        return bool(self._rib.sweep())

    def close(self) -> None:
        """Hang up."""
        for writer in self._writers:
            writer.close()
        if self._sweep is not None:
            self._sweep.cancel()
