"""What may be done to a fabric that is up, by whom: the prompt, and who watches from outside.

A sandbox's network is its own, but not its files: who watches speaks through a socket in the lab's
folder among the running ones, a line there and a line of JSON back. The folder is its user's.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller import ControllerError, still_taken
from lab.engines.mininet.running import running
from lab.errors import LabError
from lab.machine.supervisor import supervisor
from lab.scenario.live_actions import LiveAction, cables
from params.load_balancing import Policy
from topologies import Link

if TYPE_CHECKING:
    from lab.engines.mininet.emulation import Emulation  # Mininet is in the sandbox only
    from lab.engines.mininet.nics import Nics

SOCKET = "hands"
PLUG = "plug"  # what goes before hosts and a class: programs of others are to send from there
SESSIONS = "sessions"  # asks what switches' routing daemons say of theirs, in JSON
_BEFALLEN = "befallen"  # asks who has died that the fabric relies on
_MAX_BYTES = 1000
_GONE_S = 2.0  # in which a lab that does not answer is seen to be gone
_TELL_S = 10.0  # between two words on what is waited for
_ANSWER_S = 120.0  # that routes may take to be told, on a slow machine


class Hands:
    """One thing at a time."""

    def __init__(self, emulation: Emulation, nics: Nics) -> None:
        self._emulation = emulation
        self.nics = nics
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._beside: threading.Thread | None = None  # in which they send whom nobody waits for
        self.enough = threading.Event()  # set: who sends is to end
        self._dead: set[str] = set()
        self._drained: set[str] = set()
        self.traffic: Callable[[], object] | None = None  # where one may have it sent again

    def balance(self, policy: Policy) -> None:
        """Choose paths by another policy."""
        with self._lock:
            self._emulation.change(lambda s: replace(s, lb=s.lb.but(policy=policy)))
            self._emulation.journal.did(f"lb {policy.value}")

    def turn(self, links: Collection[Link], *, is_up: bool) -> None:
        """Cut cables, or mend them, and lead routes accordingly."""
        with self._lock:
            for link in links:
                self._emulation.set_up(link, is_up=is_up)
            between = {link.name for link in links if link.joins_switches}
            self._dead = self._dead - between if is_up else self._dead | between
            self._emulation.install_routes(by_hand=frozenset(self._dead))
            for name in sorted(between):
                self._emulation.journal.did(f"{'mend' if is_up else 'fail'} {name}")

    def drain(self, links: Collection[Link], *, is_drained: bool) -> frozenset[str]:
        """Leave cables to who has no other way, or use them again; those that are used still."""
        with self._lock:
            names = {link.name for link in links}
            self._drained = self._drained | names if is_drained else self._drained - names
            self._emulation.install_routes(drained_by_hand=frozenset(self._drained))
            for name in sorted(names):
                self._emulation.journal.did(f"{'drain' if is_drained else 'undrain'} {name}")
            known = self._emulation.avoided
            return (
                still_taken(self._emulation.fabric, *known) & names if is_drained else frozenset()
            )

    def restart_controller(self) -> None:
        """Let who writes routes die, and another take over from what switches have."""
        control = self._emulation.control
        if control is None:
            raise LabError(
                "our own controller does not stay: it tells switches their routes and is gone",
                "Start the lab with --control bgp, where one follows the switches' FRR.",
            )
        with self._lock:
            control.restart_controller()
            self._emulation.journal.did("controller restart")

    def send(self) -> str:
        """Let the hosts send what the scenario says, meanwhile; what to tell who asked."""
        if self.traffic is None:
            raise LabError(
                "this run sends once", "Start the lab with --cli to have traffic sent again."
            )
        self._begin()
        self._beside = threading.Thread(target=self._send, name="traffic", daemon=True)
        self._beside.start()
        return "The hosts are let send."

    @contextmanager
    def sending(self) -> Iterator[None]:
        """While the hosts send nobody else has them send."""
        self._begin()
        try:
            yield
        finally:
            self._sending.release()

    def _begin(self) -> None:
        if not self._sending.acquire(blocking=False):
            raise LabError("the hosts are sending already")

    def _send(self) -> None:
        try:
            assert self.traffic is not None
            self.traffic()
        except LabError as error:
            error.show()
        finally:
            self._sending.release()

    def end_sending(self) -> None:
        """Have whoever sends beside end, and be over with it."""
        if self._beside is not None:
            self.enough.set()
            self._beside.join()
            self.enough.clear()

    def do(self, words: str) -> str:
        """What somebody asks for who watches."""
        if words == "traffic":
            return self.send()
        if words == _BEFALLEN:
            return supervisor.befallen or ""
        if words == SESSIONS:
            return json.dumps(self._sessions())
        word, _, what = words.partition(" ")
        if word == PLUG:
            with self._lock:
                return self.nics.plug_in(what)
        fabric = self._emulation.fabric
        wish = LiveAction.read(words, fabric)
        try:
            if wish.policy is not None:
                self.balance(wish.policy)
                return f"From now on paths are chosen by {wish.value}."
            link = cables(fabric)[wish.value]
            if wish.word in ("drain", "undrain"):
                self.drain([link], is_drained=wish.word == "drain")
            else:
                self.turn([link], is_up=wish.word == "mend")
        except ControllerError as error:
            raise LabError(str(error)) from None
        return wish.done

    def _sessions(self) -> dict[str, Any]:
        """By switch, what its bgpd says of its sessions."""
        control, found = self._emulation.control, {}
        if control is None:
            return {}
        for switch in self._emulation.fabric.switches:
            with suppress(ValueError):  # of one that has just died
                found[switch.name] = json.loads(control.asked(switch, "show bgp summary json"))
        return found


@contextmanager
def reachable(hands: Hands, folder: Path) -> Iterator[None]:
    """Let those who watch ask for something, for as long as the context lasts."""
    with _at(folder) as path, socket.socket(socket.AF_UNIX) as listener:
        Path(path).unlink(missing_ok=True)
        listener.bind(path)
        Path(path).chmod(0o600)
        listener.listen()
        threading.Thread(target=_serve, args=(hands, listener), name="hands", daemon=True).start()
        yield


def ask(folder: Path, words: str) -> str:
    """From outside: have something done; what is told, or a LabError."""
    try:
        with _at(folder) as path, socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_TELL_S)
            line.connect(path)
            line.sendall(words.encode() + b"\n")
            answer = json.loads(_answer(line))
    except TimeoutError:
        raise LabError(f"the lab {folder.name} does not answer any more") from None
    except (OSError, ValueError):
        raise _unanswered(folder.name) from None
    if "error" in answer:
        raise LabError(answer["error"], answer["cure"])
    return str(answer["said"])


def _unanswered(name: str) -> LabError:
    """Why a lab does not answer; who dies shuts its sockets a moment before it is gone."""
    until = time.monotonic() + _GONE_S
    while name in {lab.name for lab in running()}:
        if time.monotonic() > until:
            return LabError(f"the lab {name} does not answer any more")
        time.sleep(_GONE_S / 20)
    return LabError(f"the lab {name} is gone: it has ended, or was killed")


def befallen(folder: Path) -> str:
    """From outside: who has died of those that the lab relies on; nobody, of one that is gone."""
    try:
        return ask(folder, _BEFALLEN)
    except LabError:
        return ""


def _answer(line: socket.socket) -> bytes:
    """A line of it; that it is waited for is told."""
    began, looks, answer = time.monotonic(), 0, b""
    while not answer.endswith(b"\n"):
        try:
            part = line.recv(1 << 16)
        except TimeoutError:
            looks += 1
            if looks * _TELL_S > _ANSWER_S:
                raise
            waited_s = time.monotonic() - began
            word = f"still waiting for the lab to answer, {waited_s:.0f} s by now"
            print(f"closlab: {word}", file=sys.stderr, flush=True)
            continue
        if not part:
            break
        answer += part
    return answer


@contextmanager
def _at(folder: Path) -> Iterator[str]:
    """The socket's path, which is short however deep the folder lies: sockets' have to be."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{place}/{SOCKET}"
    finally:
        os.close(place)


def _serve(hands: Hands, listener: socket.socket) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return  # the lab is taken down
        with line, suppress(OSError):
            line.settimeout(5)
            words = line.recv(_MAX_BYTES).decode(errors="replace").strip()
            try:
                answer: dict[str, str | None] = {"said": hands.do(words)}
            except LabError as error:
                said = supervisor.explained(error) or error
                answer = {"error": said.message, "cure": said.cure}
            except OSError as error:
                answer = {"error": str(error), "cure": None}
            line.sendall(json.dumps(answer).encode() + b"\n")
