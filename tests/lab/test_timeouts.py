"""Time-outs: as long as adapters have them, none where nothing is lost, and if one, said."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from controller import LinkSpec
from lab.errors import ScenarioError
from lab.results.cautions import cautions
from lab.results.tables import result_tables
from lab.scenario import catalogue
from lab.scenario.translate import endpoint_config
from tests.lab.simulated import Run, simulate_sparely
from views.report import write_report

# 63 senders at 10 Gb/s: a window of each is 132 MB, and takes a tenth of a second.
SLOW = (
    *("topology={kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 8}", "link.rate_gbps=10"),
    *("buffer.bytes=16MB", "traffic.bytes=400KB"),
)


def said(run: Run) -> str:
    """What the terminal shows of a run."""
    text = io.StringIO()
    result_tables(Console(file=text, width=200), run.experiment.fabric, run.result)
    return text.getvalue()


@pytest.mark.parametrize(
    ("changes", "rto", "first"),
    [
        ((), 4_294_967_296, None),
        (("transport.timeout=14",), 67_108_864, None),
        (("transport.timeout=0",), 0, None),
        (("transport.rto_ns=30us",), 30_000, None),
        (("transport.rto_ns=30us", "transport.timeout=3"), 30_000, None),
        (("transport={timeout: 14, first_rto_ns: 8us}",), 67_108_864, 8000),
    ],
)
def test_what_adapters_are_told(changes: tuple[str, ...], rto: int, first: int | None) -> None:
    """4.096 us x 2^n, n being 20 as NCCL has it."""
    scenario = catalogue.load("hello", changes)
    cable = LinkSpec(10**11)
    config = endpoint_config(
        scenario, "h1", cable, 12_000, 4_300, 4, 1, is_bonded=False, carries_payload=False
    )
    assert (config.rto, config.rto_first, config.retry_limit) == (rto, first, 7)


def test_a_first_time_out_longer_than_the_longest_is_refused() -> None:
    with pytest.raises(ScenarioError, match="lower first_rto_ns"):
        catalogue.load("hello", ("transport={rto_ns: 20us, first_rto_ns: 30us}",))


def test_a_lossless_fabric_resends_nothing_and_a_time_out_in_vain_is_said(tmp_path: Path) -> None:
    patient = simulate_sparely("incast", *SLOW, out=tmp_path / "patient")
    hasty = simulate_sparely("incast", *SLOW, "transport.timeout=10", out=tmp_path / "hasty")
    assert patient.result.drops.total == hasty.result.drops.total == 0
    assert patient.result.roce.timeouts == patient.result.roce.retransmitted_packets == 0
    assert patient.result.flows.failed == 0
    assert not list(cautions(patient.result))
    assert "in vain" not in said(patient)

    assert hasty.result.roce.timeouts > 0
    (caution,) = cautions(hasty.result)
    assert "fired though nothing was lost" in caution and "raise transport.timeout" in caution
    assert caution in said(hasty)
    report = write_report(hasty.out).read_text()
    assert "fired though nothing was lost" in report and "story warning" in report


def test_where_packets_are_lost_time_outs_are_no_caution(tmp_path: Path) -> None:
    found = simulate_sparely(
        "lossy-link", "traffic.bytes=4KB", "loss.rate=0.3", out=tmp_path
    ).result
    assert found.roce.timeouts > 0
    assert not list(cautions(found))
