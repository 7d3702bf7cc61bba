"""What is said of the energy that fabrics take."""

from __future__ import annotations

from collections.abc import Mapping

from lab.claims.claim import Case, Claim, Found, Judgement, Verdict
from params.quantity import number, percent
from views.report.charts import bars

_MAX_APART = 0.1
_SAME_BYTES: dict[str, tuple[Case, Case]] = {  # carried as they should be, and with a nuisance
    "losses, go-back-N": (Case("joules", ("loss.rate=0",)), Case("joules")),
    "losses, selective repeat": (
        Case("joules", ("loss.rate=0", "transport.recovery=selective")),
        Case("joules", ("transport.recovery=selective",)),
    ),
    "a slow link": (Case("degraded-uplink", ("link.slow={}",)), Case("degraded-uplink")),
    "losses in place of pauses": (
        Case("victim-flow"),
        Case("victim-flow", ("pfc.enabled=false",)),
    ),
    "a straggler": (Case("straggler", ("traffic.stragglers=[]",)), Case("straggler")),
    "a ring in place of a tree": (
        Case("allreduce-tree"),
        Case("allreduce-tree", ("traffic.algorithm=ring",)),
    ),
}


def _judge(found: Mapping[str, Found]) -> Judgement:
    apart: dict[str, float] = {}
    ratios: dict[str, float] = {}
    for name in _SAME_BYTES:
        usual, other = found[f"{name}, without"], found[f"{name}, with"]
        longer = other.duration_ns / usual.duration_ns
        ratios[name] = other.energy_j / usual.energy_j
        apart[name] = abs(ratios[name] / longer - 1)
    return Judgement(
        Verdict.of(value <= _MAX_APART for value in apart.values()),
        "Joules, in multiples of what they are without: "
        + ", ".join(f"{name} {number(value)}" for name, value in ratios.items())
        + f". That is the time's multiple within {percent(max(apart.values()))}.",
        {**ratios, **{f"{name}: apart from time's": value for name, value in apart.items()}},
        bars("How many times the joules", ratios, lambda value: f"{number(value)} x"),
    )


_TIME = Claim(
    "energy",
    "A fabric takes energy by the time it is on, hardly by what it carries.",
    "Nedevschi et al., Reducing Network Energy Consumption via Sleeping and Rate-Adaptation, NSDI "
    "2008. https://www.usenix.org/legacy/events/nsdi08/tech/full_papers/nedevschi/ (what is "
    "used lightly takes energy while it is idle).",
    "Six times the same work with and without something that makes it last: losses under two kinds "
    "of recovery, a slow link, losses in place of pauses, a straggler, another algorithm.",
    {
        f"{name}, {how}": case
        for name, pair in _SAME_BYTES.items()
        for how, case in zip(("without", "with"), pair, strict=True)
    },
    _judge,
)

ENERGY_CLAIMS = (_TIME,)
