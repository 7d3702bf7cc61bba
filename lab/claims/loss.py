"""What packet loss costs a training job.

The job: eight GPUs at 400 Gb/s that compute, then sum up 6 MB around a ring, and compute again,
such that at zero loss about 30 % of a step is exposed communication. Packets carry 1 KB, RoCEv2's
usual path MTU, so that a round trip holds a few hundred packets and a message 760. Every packet is
lost with the given probability. Adapters restart the message (go-back-0), go back to the lost
packet (go-back-n) or send what was lost (selective), with a time-out of 100 us; the latter two also
with 4.2 ms, short for an adapter. Such a time-out is as long as four steps, and only some seeds
lose a last packet: so averages are over many, and are told with their standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from statistics import mean, stdev

from lab.claims.claim import UNSOURCED, Case, Claim, Found, Judgement, Verdict
from params.quantity import PER_CENT, percent
from views.report.charts import lines
from views.report.svg import Drawing

RATES = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01)
SEEDS = tuple(range(1, 13))
SHORT, USUAL = "100us", "4194304ns"
WAYS = {
    "go-back-0": ("go-back-0", SHORT),
    "go-back-n": ("go-back-n", SHORT),
    "selective": ("selective", SHORT),
    "go-back-n (4.2 ms)": ("go-back-n", USUAL),
    "selective (4.2 ms)": ("selective", USUAL),
}
STEPS = 2
COMPUTE_NS = 710_000
LIMIT_NS = {"go-back-0": 30_000_000}  # a job that has not ended by then computes less than 5 %
USUAL_LIMIT_NS = 60_000_000
MESSAGE_PACKETS = 760
WINDOW = 512
_EXPERIMENT = (
    "A step of 0.7 ms of computing and a ring all-reduce of 6 MB among eight GPUs at 400 Gb/s, "
    "1 KB packets, messages of 760 packets, two steps, twelve seeds; packets lost at random. "
    "Time-outs of 100 us, and of 4.2 ms, still short for an adapter; selective recovery takes a "
    "packet for lost a round trip after one behind it arrived, so only a last one waits for those."
)


def name_of(way: str, rate: float, seed: int) -> str:
    """What a case is called."""
    return f"{way}, {rate}, {seed}"


def _case(way: str, rate: float, seed: int) -> Case:
    recovery, rto = WAYS[way]
    size = 8 * MESSAGE_PACKETS * 1024
    return Case(
        "allreduce-ring",
        (
            "link.rate_gbps=400",
            "link.mtu=1024",
            f"traffic={{kind: job, steps: {STEPS}, compute_ns: {COMPUTE_NS}, "
            f"collective: {{op: all-reduce, bytes: {size}}}}}",
            f"transport={{recovery: {recovery}, rto_ns: {rto}, retry_limit: 250}}",
            f"loss.rate={rate}",
            f"limit_ns={LIMIT_NS.get(way, USUAL_LIMIT_NS)}",
            f"seed={seed}",
        ),
    )


CASES = {
    name_of(way, rate, seed): _case(way, rate, seed)
    for way in WAYS
    for rate in RATES
    for seed in SEEDS
}


class Costs:
    """GPU utilisation by way and rate."""

    def __init__(self, found: Mapping[str, Found]) -> None:
        self._of_each = {
            way: {
                rate: [found[name_of(way, rate, seed)].utilisation or 0.0 for seed in SEEDS]
                for rate in RATES
            }
            for way in WAYS
        }
        self.utilisation = {
            way: {rate: mean(of_each) for rate, of_each in rates.items()}
            for way, rates in self._of_each.items()
        }

    def error(self, way: str, rate: float) -> float:
        """By how much other seeds would move the utilisation: its standard error."""
        return stdev(self._of_each[way][rate]) / sqrt(len(SEEDS))

    def cost(self, way: str, rate: float) -> float:
        """The share of its utilisation without loss that a job loses."""
        return 1 - self.utilisation[way][rate] / self.utilisation[way][0.0]

    def text(self, rate: float) -> str:
        """All the costs at a rate, for a sentence."""
        return _text(
            {
                way: (self.cost(way, rate), self.error(way, rate) / self.utilisation[way][0.0])
                for way in WAYS
            }
        )

    def figures(self, rate: float) -> dict[str, float]:
        """All the costs at a rate, and what a formula says of a single flow."""
        costs = {f"{way}: cost at {rate:.2%}": self.cost(way, rate) for way in WAYS}
        exposed = 1 - self.utilisation["go-back-n"][0.0]
        return {
            **costs,
            "exposed communication": exposed,
            "formula, go-back-n": formula_cost(exposed, go_back_n(rate)),
            "formula, go-back-0": formula_cost(exposed, go_back_0(rate)),
        }

    def drawing(self) -> Drawing:
        """Utilisation over loss; zero is not on a logarithmic axis."""
        series = {
            way: {rate: value for rate, value in values.items() if rate}
            for way, values in self.utilisation.items()
        }
        return lines(
            "GPU utilisation against packet loss",
            ("packets lost", PER_CENT),
            ("GPUs computing", PER_CENT),
            series,
            is_log=True,
            top=1.0,
        )


def go_back_n(rate: float) -> float:
    """The share of a window's packets that count: each loss costs what was in flight."""
    return (1 - rate) / (1 + rate * (WINDOW - 1))


def go_back_0(rate: float) -> float:
    """The share of packets that count if a message starts anew with each loss."""
    return MESSAGE_PACKETS * rate / ((1 - rate) ** -MESSAGE_PACKETS - 1)


def formula_cost(exposed: float, efficiency: float) -> float:
    """What a transport's efficiency makes of utilisation, for one flow that waits for no other."""
    with_loss = (1 - exposed) / ((1 - exposed) + exposed / efficiency)
    return 1 - with_loss / (1 - exposed)


def _text(shares: Mapping[str, tuple[float, float]]) -> str:
    """Shares by way, each with its error where that is a tenth of a per cent or more."""
    return ", ".join(
        f"{percent(share)}{f' (± {percent(error)})' if error >= 0.001 else ''} with {way}"
        for way, (share, error) in shares.items()
    )


def _whose(what: str, agrees: Mapping[str, bool]) -> str:
    """Which ways to recover agree, as a sentence."""
    ways = [way for way, does in agrees.items() if does]
    return f"{what}: {', '.join(ways) if ways else 'none of them'}."


def _judge_thirteen(found: Mapping[str, Found]) -> Judgement:
    costs = Costs(found)
    rate = 0.001
    of_each = {way: costs.cost(way, rate) for way in WAYS}
    agrees = {way: 0.09 <= cost <= 0.17 for way, cost in of_each.items()}
    figures = costs.figures(rate)
    return Judgement(
        Verdict.of(agrees.values()),
        f"Where {percent(figures['exposed communication'])} of a step is exposed communication, "
        f"0.1 % costs {costs.text(rate)}. "
        f"{_whose('Near it, from 9 to 17 %', agrees)} A formula for one flow says "
        f"{percent(figures['formula, go-back-n'])} for go-back-n and "
        f"{percent(figures['formula, go-back-0'])} for go-back-0; a ring waits for the unluckiest "
        "of its ranks, and for time-outs after every message whose end was lost.",
        figures,
        costs.drawing(),
    )


def _judge_five(found: Mapping[str, Found]) -> Judgement:
    costs = Costs(found)
    left = {way: costs.utilisation[way][0.01] for way in WAYS}
    with_errors = {way: (value, costs.error(way, 0.01)) for way, value in left.items()}
    agrees = {way: value < 0.05 for way, value in left.items()}
    return Judgement(
        Verdict.of(agrees.values()),
        f"At 1 % GPUs compute {_text(with_errors)} of the time (at most, for a job that has not "
        f"ended after 30 ms). {_whose('Less than 5 %', agrees)}",
        {f"{way}: utilisation at 1.00%": value for way, value in left.items()},
        costs.drawing(),
    )


def _judge_half(found: Mapping[str, Found]) -> Judgement:
    costs = Costs(found)
    of_each = {way: costs.cost(way, 0.01) for way in WAYS}
    agrees = {way: cost > 0.5 for way, cost in of_each.items()}
    return Judgement(
        Verdict.of(agrees.values()),
        f"1 % costs {costs.text(0.01)}. {_whose('More than half', agrees)}",
        costs.figures(0.01),
        costs.drawing(),
    )


def _judge_vendors(found: Mapping[str, Found]) -> Judgement:
    costs = Costs(found)
    of_each = {way: costs.cost(way, 0.001) for way in WAYS}
    agrees = {way: cost >= 0.45 for way, cost in of_each.items()}
    return Judgement(
        Verdict.of(agrees.values()),
        f"0.1 % costs {costs.text(0.001)}. {_whose('Half or more', agrees)} A lost last packet "
        "costs a time-out, and 4.2 ms are as long as four steps of this job: the longer the steps "
        "of a job, the less it matters.",
        costs.figures(0.001),
        costs.drawing(),
    )


LOSS_CLAIMS = (
    Claim(
        "loss-13",
        "0.1 % packet loss costs 13 % of GPU time.",
        "APNIC Blog, 22 August 2025: Why your AI factory's biggest bottleneck isn't the GPU, it's "
        "the network. https://blog.apnic.net/2025/08/22/"
        "why-your-ai-factorys-biggest-bottleneck-isnt-the-gpu-its-the-network "
        "(the figure is given without the job or transport it is of).",
        _EXPERIMENT,
        CASES,
        _judge_thirteen,
    ),
    Claim(
        "loss-50",
        "0.1 % packet loss halves training throughput.",
        "FlashGenius: Why 0.1% packet loss is killing your AI. https://flashgenius.net/blog-article/"
        "why-01-packet-loss-is-killing-your-ai-high-stakes-lessons-from-the-nvidia-ncp-ain "
        "(a drop of 50 % in training efficiency, without a measurement).",
        _EXPERIMENT,
        CASES,
        _judge_vendors,
    ),
    Claim(
        "loss-5",
        "At 1 % packet loss GPUs compute less than 5 % of the time.",
        f"{UNSOURCED}: often said beside the 13 % at 0.1 %, by nobody who could be found.",
        _EXPERIMENT,
        CASES,
        _judge_five,
    ),
    Claim(
        "loss-half",
        "1 % packet loss costs more than half of the training efficiency.",
        "P. Chaudhari, Arrcus, 30 September 2025: Your AI training cluster is idle. The network is "
        "to blame. "
        "https://arrcus.com/blog/your-ai-training-cluster-is-idle-the-network-is-to-blame "
        "(without a measurement).",
        _EXPERIMENT,
        CASES,
        _judge_half,
    ),
)
