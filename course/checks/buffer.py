"""Lesson 4: one memory for all ports, and how much of it a queue may take."""

from __future__ import annotations

import math

from course.bench import Bench, Switch
from course.check import check
from course.frames import Udp
from course.verdict import Wrong

PROGRAM, ANSWERS = "admit.p4", "answers.yaml"
_MEMORY = 200_000
_FRAME = 200
_STILL_BPS = 1_000
_MANY = _MEMORY // _FRAME + 50
_LONG_NS = 10**13
_HOGS = 4
_ALPHAS = tuple(2.0**power for power in range(-6, 5))


class _Memory:
    """A switch whose ports stand still, so that all that is admitted stays."""

    def __init__(self, bench: Bench, alpha: float) -> None:
        code = 8 + _log2(alpha)
        routes = "\n".join(
            f"add routes hdr.ipv4.dst_addr:{0x0A000200 + port:#x} forward(port:{port})"
            for port in range(1, 9)
        )
        setting = f"setdefault buffer shares(memory:{_MEMORY}, alpha:{code})"
        self.switch: Switch = bench.switch(PROGRAM, f"{routes}\n{setting}")
        for port in range(1, 9):
            self.switch.dataplane.configure_port(port, rate_bps=_STILL_BPS)
            # The first is on its way out at once, and no longer in the memory.
            self.offer(port, 1)

    def offer(self, port: int, frames: int = _MANY) -> None:
        """Send so many frames to a port; without a number more than the whole memory."""
        frame = Udp(dst=f"10.0.2.{port}", payload=bytes(_FRAME - 42)).frame
        for _ in range(frames):
            self.switch.send(0, frame, at_ns=self.switch.now_ns + 1)

    def fill(self, queues: int, each: int = _MANY) -> None:
        """Offer as much to each of the first ports, whose packets take turns."""
        for _ in range(each):
            for port in range(1, queues + 1):
                self.offer(port, 1)

    def queue(self, port: int) -> int:
        """What the program says waits there."""
        return self.switch.register("queued", port)

    def waits(self) -> dict[int, int]:
        """Bytes that really wait, by port: all of them leave now."""
        self.switch.left()
        self.switch.wait(_LONG_NS)
        found: dict[int, int] = {}
        for port, frame in self.switch.left():
            found[port] = found.get(port, 0) + len(frame)
        return found


def _log2(alpha: float) -> int:
    return round(math.log2(alpha))


def _expected(alpha: float, queues: int) -> float:
    """What each of so many full queues holds: alpha x what is free."""
    return alpha * _MEMORY / (1 + queues * alpha)


@check("What waits is counted, by port and in all, and what has left no more", 2)
def counts(bench: Bench) -> None:
    """In `queued` and `held`."""
    memory = _Memory(bench, 1)
    before = memory.switch.register("held")
    memory.offer(3, 10)
    queue, held = memory.queue(3), (memory.switch.register("held") - before) % 2**32
    if queue != 10 * _FRAME or held != 10 * _FRAME:
        raise Wrong(
            f"ten frames of {_FRAME} bytes wait for port 3: `queued` is {queue}, `held` {held}",
            f"{PROGRAM}: ingress (TODO 2): what is admitted is counted twice, by port and in all",
        )
    memory.switch.wait(_LONG_NS)
    if memory.queue(3) or memory.switch.register("held"):
        raise Wrong(
            f"all has left: `queued` is {memory.queue(3)}, `held` {memory.switch.register('held')}",
            f"{PROGRAM}: egress (TODO 3): what leaves is taken off both",
        )


@check("A queue alone takes alpha of what it leaves free", 3)
def alone(bench: Bench) -> None:
    """So never all of it."""
    for alpha in (1, 0.25, 4):
        memory = _Memory(bench, alpha)
        memory.offer(1)
        account = memory.queue(1)
        found = memory.waits().get(1, 0)
        _check_share(found, alpha, 1)
        if account != found:
            raise Wrong(
                f"{found:,} bytes wait, and `queued` is {account:,}",
                f"{PROGRAM}: ingress (TODO 2): does a packet count that was dropped?",
            )


@check("Several queues share, and a newcomer finds room", 2)
def several(bench: Bench) -> None:
    """All at once, as their packets take turns."""
    for alpha, queues in ((1.0, 3), (0.5, 5)):
        memory = _Memory(bench, alpha)
        memory.fill(queues)
        found = memory.waits()
        for port in range(1, queues + 1):
            _check_share(found.get(port, 0), alpha, queues)


def _check_share(found: int, alpha: float, queues: int) -> None:
    wanted = _expected(alpha, queues)
    who = "a queue alone" if queues == 1 else f"each of {queues} queues"
    if abs(found - wanted) <= 2 * _FRAME:
        return
    what = (
        f"with alpha {alpha:g} {who} may hold {wanted:,.0f} of {_MEMORY:,} bytes; it held {found:,}"
    )
    where = f"{PROGRAM}: ingress (TODO 1)"
    if found >= _MEMORY:
        raise Wrong(what, f"{where}: what is not to be admitted has to be dropped")
    if (
        abs(found - min(alpha, 1) * _MEMORY) <= 2 * _FRAME
        or queues * found >= _MEMORY - _FRAME * queues
    ):
        raise Wrong(what, f"{where}: alpha of what? What is free becomes less as queues grow")
    raise Wrong(
        what, f"{where}: alpha is a power of two as a number of shifts; what does 8 stand for?"
    )


@check("answers.yaml: what a newcomer finds beside four full queues", 3)
def newcomer(bench: Bench) -> None:
    """The answer is tried on the submission's own switch."""
    answers = bench.answers(ANSWERS, {"alpha": (int, float), "share": (int, float)})
    if answers["alpha"] not in _ALPHAS:
        raise Wrong(
            f"alpha is {answers['alpha']}; it has to be a power of two from 1/64 to 16",
            f"{ANSWERS} (TODO 4)",
        )
    found = {}
    for alpha in _ALPHAS:
        if abs(_log2(alpha)) <= 3:
            memory = _Memory(bench, alpha)
            memory.fill(_HOGS, _MANY // 2)
            memory.offer(_HOGS + 1)
            found[alpha] = memory.queue(_HOGS + 1)
    best = max(found, key=lambda alpha: found[alpha])
    chosen = found.get(answers["alpha"], 0)
    where = f"{ANSWERS} (TODO 4)"
    if answers["alpha"] != best:
        raise Wrong(
            f"with alpha {answers['alpha']:g} your switch lets the newcomer have {chosen:,} bytes of "
            f"{_MEMORY:,}, and there is an alpha that lets it have {found[best]:,}",
            f"{where}: is it too "
            + (
                "small for the newcomer itself?"
                if answers["alpha"] < best
                else "large for the others?"
            ),
        )
    if abs(answers["share"] - found[best] / _MEMORY) > 0.004:
        raise Wrong(
            f"the share is not {answers['share']:g}",
            f"{where}: the four hold alpha of what they left free; of that the newcomer may hold "
            "alpha of what it leaves free",
        )
