"""A cable between two switches of one process, and whoever looks at it or changes it meanwhile.

    python -m tests.switch.any_watchers --count 40 --seed 1

Frames of any size go both ways all the time, by memory or by the kernel as the switches please.
Meanwhile somebody looks, in each way that there is, has the kernel queue, shape or filter, sets
either end down, takes it away, or has it carry shorter frames; by lot, several at once. What comes
is what was sent, in its order, nothing twice; nothing is lost but where a cable was down or too
narrow, and then nothing passes; who looks sees all that is sent from when it was promised.
"""

from __future__ import annotations

import argparse
import errno
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.switch.interfaces import Host, crossed, frame, tapped, two_switches
from tests.veths import run, unshare

_ENDS = "m1", "m2"
_AT_ONCE_S, _SOON_S = 0.1, 0.4  # by when it is seen that somebody looks
_FRAMES = 60  # of a round, each way
_RATE = 4_000_000  # bits a second, of a shaper
_NARROW = 1300  # below 1280 the kernel makes IPv6 anew at the end, which speaks
_ALL, _ETHER = 3, 0x88B5
_SO_RCVBUFFORCE = 33
# Of these, while they come and go, the kernel drops what is sent, and keeps it to itself.
_DISCIPLINES = {"pfifo", "tbf", "htb", "clsact"}
Change = AbstractContextManager[object]


@contextmanager
def _commands(*pairs: tuple[str, str]) -> Iterator[None]:
    for begin, _ in pairs:
        run(begin)
    try:
        yield
    finally:
        for _, end in pairs:
            run(end)


@contextmanager
def _listening(interface: str | None, protocol: int) -> Iterator[socket.socket]:
    """A socket of which the kernel tells nobody."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol)) as tap:
        if interface:
            tap.bind((interface, protocol))
        yield tap


def _discipline(end: str, words: str) -> Change:
    kind = "clsact" if words == "clsact" else "root"
    add = f"tc qdisc add dev {end} {words if kind == 'clsact' else f'root {words}'}"
    return _commands((add, f"tc qdisc del dev {end} {kind}"))


def _changes(end: str) -> dict[str, tuple[Callable[[], Change], float]]:
    """What may befall an end of the cable, and by when it is seen."""
    shaper = f"tbf rate {_RATE}bit burst 20000 limit 10000000"
    return {
        "tap": (lambda: tapped(end), _AT_ONCE_S),
        "tap of one protocol": (lambda: _listening(end, _ETHER), _SOON_S),
        "tap of all, quietly": (lambda: _listening(end, _ALL), _SOON_S),
        "tap of any interface": (lambda: _listening(None, _ALL), _SOON_S),
        "pfifo": (lambda: _discipline(end, "pfifo limit 10000"), _AT_ONCE_S),
        "tbf": (lambda: _discipline(end, shaper), _AT_ONCE_S),
        "htb": (lambda: _discipline(end, "htb"), _AT_ONCE_S),
        "clsact": (lambda: _discipline(end, "clsact"), _AT_ONCE_S),
        "down": (
            lambda: _commands((f"ip link set {end} down", f"ip link set {end} up")),
            _SOON_S,
        ),
        "mtu": (
            lambda: _commands((f"ip link set {end} mtu {_NARROW}", f"ip link set {end} mtu 9216")),
            _SOON_S,
        ),
    }


class _Round:
    """Frames both ways; which of them came."""

    def __init__(self, hosts: tuple[Host, Host], chance: Random, first: int) -> None:
        self._hosts = hosts
        sizes = [chance.choice((64, 200, 980, 1500, 9000)) for _ in range(_FRAMES)]
        self._naps = [chance.choice((0, 0, 0, 0.0005, 0.002)) for _ in sizes]
        self.sent = [frame(size, first + number) for number, size in enumerate(sizes)]
        self.came: dict[int, list[bytes]] = {}
        self.took_s = 0.0
        self._began = 0.0
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> _Round:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def _send(self) -> None:
        for each, nap in zip(self.sent, self._naps, strict=True):
            for host in self._hosts:
                host.send(each)
            if nap:
                time.sleep(nap)

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        for at, host in enumerate(self._hosts):
            self.came[at] = host.receive_most(len(self.sent))
        self.took_s = time.monotonic() - self._began

    def wrong(self, what: str, *, whole: bool) -> Iterator[str]:
        """What should not be: in another order, twice, changed; or not there, if all should be."""
        for at, came in self.came.items():
            left = iter(self.sent)
            if not all(each in left for each in came):
                came_at = [self.sent.index(each) if each in self.sent else -1 for each in came]
                yield f"{what}: to {'ab'[at]} came {came_at} of {len(self.sent)}"
            elif whole and len(came) < len(self.sent):
                yield f"{what}: {len(self.sent) - len(came)} frames to {'ab'[at]} were lost"


def _passes(how: set[str], size: int) -> bool:
    return "down" not in how and not ("mtu" in how and size > _NARROW + 14)


def case(seed: int, folder: Path, kinds: Counter[str]) -> Iterator[str]:
    """One cable, to which this and that happens; what was wrong."""
    chance = Random(seed)
    with two_switches(folder, chance.choice((300, 1000, 3000))) as hosts:
        for host in hosts:
            host.socket.settimeout(0.7)
        first = 0
        for _ in range(4):
            chosen = {
                (end, name)
                for end in chance.sample(_ENDS, chance.randint(1, 2))
                for name in chance.sample([*_changes(end)], chance.choice((1, 1, 2)))
            }
            queues = [each for each in chosen if each[1] in ("pfifo", "tbf", "htb")]
            chosen -= {each for each in queues if sum(q[0] == each[0] for q in queues) > 1}
            if not chosen:
                continue
            kinds.update(name for _, name in chosen)
            yield from _befalls(hosts, chance, sorted(chosen), first)
            first += 10 * _FRAMES


def _befalls(
    hosts: tuple[Host, Host], chance: Random, chosen: list[tuple[str, str]], first: int
) -> Iterator[str]:
    how = {name for _, name in chosen}
    what = ", ".join(f"{name} at {end}" for end, name in chosen)
    is_harmless = not how & {"down", "mtu"}
    is_smooth = is_harmless and not how & _DISCIPLINES
    begun: list[tuple[str, Change, object]] = []
    try:
        with _Round(hosts, chance, first) as during:
            for end, name in chosen:
                time.sleep(chance.uniform(0, 0.02))
                make, _ = _changes(end)[name]
                change = make()
                begun.append((name, change, change.__enter__()))
        yield from during.wrong(f"{what}, as it begins", whole=is_smooth)
        time.sleep(max(_changes(end)[name][1] for end, name in chosen))
        for _, _, tap in begun:
            if isinstance(tap, socket.socket):
                tap.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
                _drained(tap)
        before = [crossed(end) for end in _ENDS]
        with _Round(hosts, chance, first + _FRAMES) as then:
            pass
        yield from then.wrong(f"{what}, while it lasts", whole=is_harmless)
        yield from _while_it_lasts(what, how, begun, then, before)
    finally:
        with _Round(hosts, chance, first + 2 * _FRAMES) as after:
            for _, change, _ in reversed(begun):
                time.sleep(chance.uniform(0, 0.02))
                change.__exit__(None, None, None)
    yield from after.wrong(f"{what}, as it ends", whole=is_smooth)
    time.sleep(_SOON_S)
    before = [crossed(end) for end in _ENDS]
    with _Round(hosts, chance, first + 3 * _FRAMES) as last:
        pass
    yield from last.wrong(f"after {what}", whole=True)
    if [crossed(end) for end in _ENDS] != before:
        yield f"after {what}: frames still go by the kernel"


def _while_it_lasts(
    what: str,
    how: set[str],
    begun: list[tuple[str, Change, object]],
    then: _Round,
    before: list[int],
) -> Iterator[str]:
    should = [each for each in then.sent if _passes(how, len(each))]
    if any(came != should for came in then.came.values()):
        yield f"{what}: {[len(came) for came in then.came.values()]} came, not {len(should)}"
    if how == {"mtu"} or "down" in how:
        return
    sent = [now - was for now, was in zip(map(crossed, _ENDS), before, strict=True)]
    if sent != [len(should)] * 2:
        yield f"{what}: {sent} went by the kernel, not {len(should)} each way"
    for name, _, tap in begun:
        if isinstance(tap, socket.socket):
            seen = Counter(_drained(tap))
            # Both ways the same went; who asks for one protocol is not shown what leaves.
            ways = 1 if name == "tap of one protocol" else 2
            few = sum(seen[each] < ways for each in should)
            if few:
                yield f"{what}: {name} saw {few} of {len(should)} frames too seldom"
    least_s = (sum(map(len, should)) - 20_000) * 8 / _RATE
    if "tbf" in how and then.took_s < 0.9 * least_s:
        yield f"{what}: all were there in {then.took_s:.2f} s, not {least_s:.2f} s"


def _drained(tap: socket.socket) -> list[bytes]:
    tap.setblocking(False)
    found = []
    while True:
        try:
            found.append(tap.recv(10_000))
        except BlockingIOError:
            return found
        except OSError as error:
            if error.errno != errno.ENETDOWN:  # it was for a while, which is told once
                raise


def main() -> int:
    """Run them in a network of their own, and say which are wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.inside:
        words = [*unshare("--mount"), sys.executable, "-m", "tests.switch.any_watchers"]
        return subprocess.run([*words, *sys.argv[1:], "--inside"], check=False).returncode
    kinds: Counter[str] = Counter()
    failed = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        with TemporaryDirectory() as folder:
            wrong = [*case(seed, Path(folder), kinds)]
        for end in ("a0", "m1", "b0"):
            run(f"ip link del {end}")
        failed += bool(wrong)
        if wrong:
            print(f"{seed}:", *wrong, sep="\n  ", flush=True)
    print(f"{asked.count} cases, {failed} wrong:", dict(kinds))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
