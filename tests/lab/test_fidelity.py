"""Whether a run on real clocks is believed: what it says of a machine that could not keep up.

Mininet runs cannot be made late or lossy by a stated amount; what is judged here is the judgement.
The simulator's is in test_lossless.py and test_receivers.py, on runs.
"""

import pytest

from lab.engines.mininet import endpoints
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

# A packet's time on the link: 1,000 ns on the way and 4,096 bytes at 100 Gb/s.
PATIENCE_NS = 1000 + 4096 * 8 // 100


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    changes = ("link={rate_gbps: 100, delay_ns: 1000, mtu: 4096}",)
    return Experiment.of(catalogue.load("incast", changes))


@pytest.mark.parametrize(
    ("late_ns", "lost", "overrun", "expected", "dilation"),
    [
        (0, {}, 0, "", 0),
        (PATIENCE_NS, {}, 0, "", 0),
        (PATIENCE_NS + 1, {}, 0, f"hosts were {PATIENCE_NS + 1:,} ns late", 100),
        (3 * PATIENCE_NS, {}, 0, f"hosts were {3 * PATIENCE_NS:,} ns late", 150),
        (0, {"h1-a": 3, "a-b": 1200}, 0, "1,203 frames were lost between processes (a-b, h1", 100),
        (0, {}, 7, "7 packets came after the pause that should have kept them", 100),
        (9 * PATIENCE_NS, {"a-b": 1}, 2, "late and 1 frames were lost", 450),
    ],
)  # fmt: skip
def test_what_a_machine_could_not_do_is_told_with_the_cure(
    experiment: Experiment,
    late_ns: int,
    lost: dict[str, int],
    overrun: int,
    expected: str,
    dilation: int,
) -> None:
    doubts = endpoints.Doubts(late_ns, 0, lost, overrun)
    found = doubts.fidelity(endpoints.most_late_ns(experiment), dilation=50)
    assert found.late_p99_ns == late_ns
    assert found.ok == (not expected)
    if expected:
        assert found.note is not None
        assert expected in found.note
        assert found.note.endswith(f"--dilation {dilation}")


@pytest.mark.parametrize("hosts_ns", [0, PATIENCE_NS, 2 * PATIENCE_NS])
@pytest.mark.parametrize("switches_ns", [0, PATIENCE_NS, PATIENCE_NS + 1, 5 * PATIENCE_NS])
def test_switches_are_judged_as_hosts_are(
    experiment: Experiment, hosts_ns: int, switches_ns: int
) -> None:
    doubts = endpoints.Doubts(hosts_ns, switches_ns, {}, 0)
    found = doubts.fidelity(endpoints.most_late_ns(experiment), dilation=50)
    late = {"hosts were": hosts_ns, "switches were": switches_ns}
    assert found.late_p99_ns == max(late.values())
    assert found.ok == (max(late.values()) <= PATIENCE_NS)
    for who, late_ns in late.items():
        assert (f"{who} {late_ns:,} ns late" in (found.note or "")) == (late_ns > PATIENCE_NS)


def test_faults_that_come_late_are_told() -> None:
    doubts = endpoints.Doubts(0, 0, {}, 0, behind_ns=123_456)
    found = doubts.fidelity(1_000, dilation=50)
    assert not found.ok and found.note is not None
    assert "a fault, or its end, came 123,456 ns late" in found.note
    assert found.note.endswith("--dilation 100")
