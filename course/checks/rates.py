"""Lesson 7: how DCQCN and HPCC choose a sender's rate."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from course.bench import Bench
from course.check import check
from course.verdict import Wrong

FUNCTIONS, ANSWERS = "rates.py", "answers.yaml"
_G, _FAST, _ADDITIVE, _HYPER, _ETA = 1 / 256, 5, 40.0, 400.0, 0.95
_NEAR = 1e-6
_LATER = 1.05


def _numbers(bench: Bench, function: str, count: int, *arguments: object) -> list[float]:
    """What a function returns, which has to be so many numbers."""
    found = bench.functions(FUNCTIONS).call(function, *arguments)
    is_right = isinstance(found, list) and len(found) == count
    if not is_right or not all(isinstance(each, int | float) for each in found):
        raise Wrong(
            f"{function} returns {found!r}; it has to be a list of {count} numbers",
            f"{FUNCTIONS}: {function}",
        )
    return [float(each) for each in found]


def _differ(found: float, wanted: float) -> bool:
    return not math.isclose(found, wanted, rel_tol=_NEAR, abs_tol=_NEAR)


def _compare(
    what: str, found: Sequence[float], wanted: Sequence[float], hints: Sequence[str]
) -> None:
    for got, right, hint in zip(found, wanted, hints, strict=True):
        if _differ(got, right):
            raise Wrong(f"{what} gives {got:g}, which should be {right:g}", f"{FUNCTIONS}: {hint}")


@check("DCQCN: a notification cuts the rate", 2)
def cuts(bench: Bench) -> None:
    """By half of alpha, and alpha grows."""
    draw = random.Random(7)
    for _ in range(20):
        rate, alpha = draw.uniform(10, 1e5), draw.uniform(0, 1)
        _compare(
            f"cut({rate:g}, {alpha:g})",
            _numbers(bench, "cut", 3, rate, alpha),
            [rate * (1 - alpha / 2), rate, (1 - _G) * alpha + _G],
            [
                "cut (TODO 1): the rate, by the alpha that there was",
                "cut (TODO 1): the target: where does it want to come back to?",
                "cut (TODO 1): alpha, which moves towards 1 by a part G of the way",
            ],
        )


@check("DCQCN: without notifications alpha fades")
def calms(bench: Bench) -> None:
    """Towards 0."""
    for alpha in (1.0, 0.5, 0.01):
        found = bench.functions(FUNCTIONS).number("calm", alpha)
        hint = "calm (TODO 2): towards 0 by a part G of the way"
        _compare(f"calm({alpha:g})", [found], [(1 - _G) * alpha], [hint])


@check("DCQCN: back to the target, then beyond it, ever faster", 3)
def climbs(bench: Bench) -> None:
    """Fast recovery, additive and hyper increase."""
    for by_time, by_bytes in ((1, 0), (5, 5), (6, 0), (2, 9), (9, 5), (6, 6), (8, 7), (20, 12)):
        target = 5000.0
        if max(by_time, by_bytes) <= _FAST:
            stage = "fast recovery: the target stays"
        elif min(by_time, by_bytes) <= _FAST:
            stage, target = "additive increase", target + _ADDITIVE
        else:
            rounds = min(by_time, by_bytes) - _FAST
            stage, target = "hyper increase", target + rounds * _HYPER
        _compare(
            f"climb(1000, 5000, {by_time}, {by_bytes})",
            _numbers(bench, "climb", 2, 1000.0, 5000.0, by_time, by_bytes),
            [(1000 + target) / 2, target],
            [
                f"climb (TODO 3): {stage}: the rate is to be half-way to the new target",
                f"climb (TODO 3): {stage}: which of the two counts decides, and from where on?",
            ],
        )


@check("HPCC: how loaded a link is", 2)
def loads(bench: Bench) -> None:
    """What it holds and what it carries."""
    draw = random.Random(8)
    for _ in range(20):
        queue, rtt = draw.randrange(0, 10**6), draw.randrange(1000, 50_000)
        line = draw.choice((25, 100, 400))
        sent = draw.uniform(0, line)
        found = bench.functions(FUNCTIONS).number("load", queue, sent, line, rtt)
        wanted = queue * 8 / (line * rtt) + sent / line
        if _differ(found, wanted):
            hint = (
                "a byte has 8 bits"
                if not _differ(found, queue / line / rtt + sent / line)
                else ("what of it is the queue, what the rate, and against what is each held?")
            )
            raise Wrong(
                f"load({queue}, {sent:g}, {line}, {rtt}) gives {found:g}, which should be {wanted:g}",
                f"{FUNCTIONS}: load (TODO 4): {hint}",
            )


@check("HPCC: the window that fills the busiest link to 95 %", 2)
def windows(bench: Bench) -> None:
    """And no more."""
    for reference, links in (
        (1e5, [0.2, 1.9, 0.5]),
        (5e4, [0.95]),
        (2e4, [0.3, 0.94]),
        (1e6, [4, 1]),
    ):
        found = bench.functions(FUNCTIONS).number("window", reference, links, 500.0)
        busiest = max(links)
        wanted = (reference if busiest < _ETA else reference * _ETA / busiest) + 500
        if _differ(found, wanted):
            raise Wrong(
                f"window({reference:g}, {links}, 500) gives {found:g}, which should be {wanted:g}",
                f"{FUNCTIONS}: window (TODO 5): "
                + (
                    "there is room: one step up"
                    if busiest < _ETA
                    else "which link decides, and by how much?"
                ),
            )


@check("answers.yaml: the two of them in an incast", 3)
def in_the_fabric(bench: Bench) -> None:
    """Seven hosts that write to one."""
    answers = bench.answers(ANSWERS, {"fewer_pauses": str, "additive_mbps": (int, float)})
    by_marks = ("ecn.enabled=true", "transport.cc=dcqcn")
    hpcc = bench.run("incast", "transport.cc=hpcc")
    usual = bench.run("incast", *by_marks)
    fewer = "hpcc" if hpcc.pfc.xoff_frames < usual.pfc.xoff_frames else "dcqcn"
    if answers["fewer_pauses"] != fewer:
        raise Wrong(
            f"{answers['fewer_pauses']} does not need fewer pause frames",
            f"{ANSWERS} (TODO 6): the reports say how many there were",
        )
    step = f"transport.dcqcn.additive_mbps={answers['additive_mbps']}"
    tuned = bench.run("incast", *by_marks, step, said=ANSWERS)
    later = tuned.duration_ns / hpcc.duration_ns
    if tuned.ended or later > _LATER:
        raise Wrong(
            f"with {step} DCQCN takes {later:.2f} times as long as HPCC",
            f"{ANSWERS} (TODO 7): in which stage does a sender spend its time when the others are done?",
        )
