"""TIMELY and PowerTCP in a fabric: they hold queues where their papers say, and nothing is lost."""

from __future__ import annotations

import io
from pathlib import Path
from statistics import fmean

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.errors import ScenarioError
from lab.progress import Stages
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data

MS = 1_000_000
GBPS = 100
FRAME = 4096 + 74


class Came(Data):
    """What a bottleneck of 100 Gb/s came to, once settled."""

    round_trip_ns: int
    gbps: float
    queue: float
    most_queue: int
    paused_ns: int
    dropped: int
    shares: list[float]

    @property
    def product(self) -> float:
        """Bandwidth times delay, in bytes."""
        return GBPS / 8 * self.round_trip_ns

    @property
    def fairness(self) -> float:
        """Jain's index."""
        return sum(self.shares) ** 2 / len(self.shares) / sum(each**2 for each in self.shares)


def settled(
    cc: str, senders: int, settled_ms: int, until_ms: int, out: Path, *changes: str
) -> Came:
    """So many senders to one receiver over two tiers, without end."""
    chosen = Experiment.of(
        catalogue.load(
            "incast",
            (
                "topology={kind: leaf-spine, leaves: 4, spines: 8, hosts_per_leaf: 16}",
                f"traffic={{kind: incast, senders: {senders}, bytes: 500MB}}",
                *("buffer.bytes=32MB", "ecn.enabled=false", f"transport.cc={cc}"),
                *("measures.series_ns=5us", f"limit_ns={until_ms * MS}", *changes),
            ),
        )
    )
    options = RunOptions(out=out, engine="sim")
    outcome = outcome_of(chosen, options, Stages(Console(file=io.StringIO())))
    notes = [note for note in outcome.notes if note.time_ns >= settled_ms * MS]
    into = [note for note in notes if note.link.endswith(">h1")]
    ends = {link: [n for n in notes if n.link == link] for link in {n.link for n in notes}}
    sent = [
        its[-1].bytes - its[0].bytes
        for link, its in ends.items()
        if link.startswith("h") and not link.startswith("h1>")
    ]
    return Came(
        round_trip_ns=chosen.round_trip_ns,
        gbps=(into[-1].bytes - into[0].bytes) * 8 / (into[-1].time_ns - into[0].time_ns),
        queue=fmean(note.queue_bytes for note in into),
        most_queue=max(note.queue_bytes for note in into),
        paused_ns=sum(its[-1].paused_ns - its[0].paused_ns for its in ends.values()),
        dropped=sum(its[-1].dropped for its in ends.values()),
        shares=sorted(bytes_ for bytes_ in sent if bytes_ > 10 * FRAME),
    )


@pytest.mark.parametrize(
    ("senders", "flows"), [(8, 10), (2, 10), pytest.param(8, 20, marks=pytest.mark.slow)]
)
def test_powertcp_queues_are_the_beta_of_all_flows(
    senders: int, flows: int, tmp_path: Path
) -> None:
    """Its paper's balance, and the packet by which a flow may be beyond its window.

    Over seeds, for what flies is whole packets: how many flows have one more is their luck.
    """
    queues = []
    for seed in (1, 2, 3):
        chosen = (f"transport.powertcp.flows={flows}", f"seed={seed}")
        came = settled("powertcp", senders, 2, 6, tmp_path, *chosen)
        balance = senders * (came.product / flows + FRAME)
        queues.append(came.queue)
        assert came.most_queue < 1.5 * balance
        assert came.gbps > 0.99 * GBPS
        assert (came.paused_ns, came.dropped) == (0, 0)
        assert len(came.shares) == senders
        assert came.fairness > 0.99
    assert fmean(queues) == pytest.approx(balance, rel=0.1), queues


@pytest.mark.parametrize("senders", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_timely_holds_round_trips_about_t_low(senders: int, tmp_path: Path) -> None:
    """On average the queue stays below what T_low allows, 1.5 bandwidth-delay products."""
    came = settled("timely", senders, 5, 20, tmp_path)
    assert 0 < came.queue < 1.5 * came.product, came
    assert came.most_queue < 4 * came.product
    assert came.gbps > 0.8 * GBPS
    assert (came.paused_ns, came.dropped) == (0, 0)
    assert len(came.shares) == senders
    assert came.fairness > 0.95


def test_timely_s_parameters_act(tmp_path: Path) -> None:
    """Rates grow whatever the gradient as long as round trips are below T_low."""
    long, short = (
        settled("timely", 8, 5, 15, tmp_path, f"transport.timely={{low_rtt_ns: {low}}}")
        for low in ("50us", "15us")
    )
    assert short.most_queue < long.most_queue / 2
    assert short.gbps > 1.2 * long.gbps


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("transport.powertcp.gamma=0", "must be more than 0"),
        ("transport.powertcp.flows=0", "must be at least 1"),
        ("transport.timely.low_rtts_ns=1us", "did you mean 'transport.timely.low_rtt_ns'"),
    ],
)
def test_what_makes_no_sense_is_refused(change: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        catalogue.load("incast", (change,))
    assert complaint in caught.value.message
