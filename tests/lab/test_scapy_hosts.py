"""Scapy endpoints on Mininet: the same messages, in the same packets, as with those in C."""

import csv
from pathlib import Path

import pytest

from lab.results.result import Result
from lab.runs.run import UNBELIEVED
from tests.lab.conftest import closlab
from views.report import read_run

SCAPY = "transport.endpoint=scapy"
FOUR = "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"


def run(out: Path, scenario: str, *changes: str) -> tuple[Result, list[tuple[str, ...]]]:
    """A run's result, and its messages: from whom, to whom, how long, and what for."""
    words = [word for change in changes for word in ("--set", change)]
    done = closlab("run", scenario, "--engine", "mininet", *words, "--out", str(out))
    assert done.returncode in (0, UNBELIEVED), done.stderr  # arrives it does on a busy machine too
    with (out / "flows.csv").open() as file:
        rows = [
            (row["src"], row["dst"], row["bytes"], row["complete"]) for row in csv.DictReader(file)
        ]
    return read_run(out).result, sorted(rows)


@pytest.mark.slow
@pytest.mark.mininet
def test_a_collective_is_the_same_with_both(tmp_path: Path) -> None:
    small = (FOUR, "traffic.bytes=64KB")
    core, messages = run(tmp_path / "core", "allreduce-ring", *small)
    scapy, same = run(tmp_path / "scapy", "allreduce-ring", *small, SCAPY)
    assert messages == same
    assert core.flows.completed == scapy.flows.completed == core.flows.count
    assert core.roce.data_bytes == scapy.roce.data_bytes
    assert core.roce.data_packets == scapy.roce.data_packets
    assert scapy.dilation > core.dilation


@pytest.mark.slow
@pytest.mark.mininet
def test_what_a_bad_cable_loses_is_sent_again(tmp_path: Path) -> None:
    incast = ("traffic.senders=3", "traffic.bytes=200KB")
    changes = (FOUR, *incast, "loss.rate=0.02", "transport.rto_ns=300us", SCAPY)
    result, messages = run(tmp_path, "incast", *changes)
    assert {complete for *_, complete in messages} == {"1"}
    assert result.drops.total > 0
    assert result.roce.retransmitted_packets >= result.drops.by_reason["injected_loss"]


def test_the_simulator_says_that_it_has_none(tmp_path: Path) -> None:
    done = closlab("run", "hello", "--engine", "sim", "--set", SCAPY, "--out", str(tmp_path))
    assert done.returncode == 1
    assert "transport.endpoint: the simulator has no scapy endpoint" in done.stderr
    assert "Leave it out or make it core" in done.stderr
