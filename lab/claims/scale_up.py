"""What is said of Ethernet inside of racks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from lab.claims.claim import Case, Claim, Found, Judgement, Verdict
from params.quantity import number
from views.report.charts import bars

_ROCE = "transport={kind: roce, ack_every: 4}"
_BYTES = 15_360  # from each to each other


def _messages(size: int) -> str:
    """Four accelerators write to each other, so much at a time."""
    pairs = [f"{{src: h{a}, dst: h{b}, bytes: {size}}}" for a, b in permutations(range(1, 5), 2)]
    return f"traffic={{kind: flows, flows: [{', '.join(_BYTES // size * pairs)}]}}"


_TRAFFIC: dict[str, tuple[str, ...]] = {
    f"{size:,} bytes at a time": ("topology.hosts_per_leaf=4", _messages(size))
    for size in (256, 1024, 3840, 15_360)
} | {"experts' tokens": ()}


def _judge(found: Mapping[str, Found]) -> Judgement:
    ratios = {
        name: found[f"{name}, SUE"].duration_ns / found[f"{name}, RoCEv2"].duration_ns
        for name in _TRAFFIC
    }
    return Judgement(
        Verdict.of(ratio < 1 for ratio in ratios.values()),
        "By scale-up Ethernet it takes, of RoCEv2's time: "
        + ", ".join(f"{name} {number(ratio)}" for name, ratio in ratios.items())
        + ". Short headers win where messages are short; in long ones a command for each 256 bytes "
        "costs more than they save.",
        ratios,
        bars("Of RoCEv2's time", ratios, number),
    )


_HEADERS = Claim(
    "scale-up",
    "Inside of a rack, Ethernet with short headers is quicker than RoCEv2.",
    "Herbert, Scale-Up Network Header (SUNH), draft-herbert-sunh-01, 2026. "
    "https://datatracker.ietf.org/doc/draft-herbert-sunh/ (headers of IP, UDP and RoCEv2 are too "
    "long for what accelerators store).",
    "Four accelerators at one switch send each other the same bytes in messages of four sizes, "
    "and sixteen their tokens to experts, by scale-up Ethernet as docs/scale-up.md has it and by "
    "RoCEv2, both with credits.",
    {
        f"{name}, {school}": Case("scale-up", (*traffic, *more))
        for name, traffic in _TRAFFIC.items()
        for school, more in (("SUE", ()), ("RoCEv2", (_ROCE,)))
    },
    _judge,
)

SCALE_UP_CLAIMS = (_HEADERS,)
