"""HPCC in a fabric: rate and queue are those of the paper's algorithm in an independent model."""

from __future__ import annotations

import io
from pathlib import Path
from statistics import fmean

import pytest
from rich.console import Console
from scapy.layers.inet import IP
from scapy.utils import rdpcap

from lab.engines import RunOptions
from lab.progress import Stages
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.simulated import simulate_sparely
from tests.traffic.hpcc_model import settle
from traffic.layers import IntHeader

MS = 1_000_000
SETTLED_NS, UNTIL_NS = 2 * MS, 8 * MS
FRAME = 4096 + 74
RATE_BOUND, QUEUE_BOUND = 0.02, FRAME


def experiment(senders: int, seed: int, *changes: str) -> Experiment:
    """So many senders to one receiver, over two tiers."""
    return Experiment.of(
        catalogue.load(
            "incast",
            (
                "topology={kind: leaf-spine, leaves: 4, spines: 8, hosts_per_leaf: 16}",
                f"traffic={{kind: incast, senders: {senders}, bytes: 500MB}}",
                "buffer.bytes=32MB",
                "transport.cc=hpcc",
                "measures.series_ns=2us",
                f"limit_ns={UNTIL_NS}",
                f"seed={seed}",
                *changes,
            ),
        )
    )


def simulated(chosen: Experiment, out: Path) -> tuple[float, float]:
    """The rate in Gb/s, and the queue, before the receiver."""
    outcome = outcome_of(
        chosen, RunOptions(out=out, engine="sim"), Stages(Console(file=io.StringIO()))
    )
    notes = [n for n in outcome.notes if n.link.endswith(">h1") and n.time_ns >= SETTLED_NS]
    took = notes[-1].time_ns - notes[0].time_ns
    return (notes[-1].bytes - notes[0].bytes) * 8 / took, fmean(n.queue_bytes for n in notes)


def modelled(chosen: Experiment, senders: int, seed: int) -> tuple[float, float]:
    """The same in the model, whose receiver's link alone is busy."""
    link = chosen.cable(chosen.host_links[chosen.fabric.hosts[0]])
    return settle(
        senders,
        link.rate_bps,
        chosen.round_trip_ns,
        settled_ns=SETTLED_NS,
        until_ns=UNTIL_NS,
        seed=seed,
    )


def compared(
    senders: int, out: Path, *changes: str, seeds: range = range(1, 3)
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Rate and queue over several seeds: ours, and the model's."""
    chosen = {seed: experiment(senders, seed, *changes) for seed in seeds}
    own = [simulated(chosen[seed], out) for seed in seeds]
    model = [modelled(chosen[seed], senders, seed) for seed in seeds]
    return _means(own), _means(model)


def _means(came: list[tuple[float, float]]) -> tuple[float, float]:
    return fmean(rate for rate, _ in came), fmean(queue for _, queue in came)


def hold(senders: int, out: Path, *changes: str, seeds: range = range(1, 3)) -> None:
    """Rate and queue are the model's, within the bounds."""
    own, model = compared(senders, out, *changes, seeds=seeds)
    where = f"{senders} senders, {changes}: {own}, model {model}"
    assert own[0] == pytest.approx(model[0], rel=RATE_BOUND), where
    assert own[1] == pytest.approx(model[1], abs=QUEUE_BOUND), where


@pytest.mark.parametrize("senders", [2, pytest.param(63, marks=pytest.mark.slow)])
def test_many_to_one_are_the_model_s(senders: int, tmp_path: Path) -> None:
    """Sixty-three have windows of less than a packet each."""
    hold(senders, tmp_path)


def test_faster_links_inside_count_for_what_they_are(tmp_path: Path) -> None:
    hold(8, tmp_path, "link.rate_gbps=25", "link.fabric_rate_gbps=100")


@pytest.mark.slow
@pytest.mark.parametrize("senders", [1, 2, 8, 20, 63])
@pytest.mark.parametrize(
    ("gbps", "fabric_gbps"), [(25, 25), (25, 100), (100, 100), (100, 400), (400, 400), (400, 800)]
)
def test_any_speeds_and_senders_are_the_model_s(
    senders: int, gbps: int, fabric_gbps: int, tmp_path: Path
) -> None:
    rates = (f"link.rate_gbps={gbps}", f"link.fabric_rate_gbps={fabric_gbps}")
    hold(senders, tmp_path, *rates, seeds=range(1, 4))


def test_every_hop_tells_its_own_link_s_rate(tmp_path: Path) -> None:
    """To the receiver's sight, newest hop first: its own link, the spine's, the sender's leaf's."""
    run = simulate_sparely(
        "incast",
        "traffic={kind: incast, senders: 7, bytes: 40KB}",
        "link={rate_gbps: 100, fabric_rate_gbps: 400, slow: {leaf1-spine1: 0.25, h1-leaf1: 0.1}}",
        "transport.cc=hpcc",
        "measures.pcap=[h1-leaf1]",
        "buffer.bytes=4MB",
        out=tmp_path,
    )
    receiver = str(run.experiment.fabric.address(run.experiment.fabric.hosts[0]))
    seen = {
        tuple(hop["link_mbps"] for hop in packet[IntHeader].hops())
        for capture in (run.out / "pcaps").glob("*.pcap")
        for packet in rdpcap(str(capture))
        if IntHeader in packet and packet[IP].dst == receiver
    }
    assert seen == {(10_000,), (10_000, 100_000, 400_000), (10_000, 400_000, 400_000)}
