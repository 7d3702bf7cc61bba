"""Parameters of congestion controls: each of them acts, and without it all is as it was."""

from pathlib import Path

import pytest

from tests.lab.simulated import simulate_sparely
from traffic.congestion import CONTROLS

# By control: what a run of it is, and values of its parameters that are far from the usual ones.
RUNS = {
    "swift": (
        ("transport={kind: uet, cc: swift}", "pfc.enabled=false", "trim.enabled=true"),
        {
            "additive": 20, "beta": 0.05, "most_decrease": 0.05, "queue_base": 4, "hop_share": 0.2,
            "range": 0, "least_scaled": 1, "most_scaled": 2, "most_bdps": 0.3,
        },
    ),
    "nscc": (
        (
            "transport={kind: uet, cc: nscc}",
            "pfc.enabled=false",
            "trim.enabled=true",
            "ecn={enabled: true, kmin: 20KB, kmax: 60KB, pmax: 1}",
        ),
        {
            "gamma": 0.05, "least_factor": 0.99, "average_weight": 1, "fair": 200,
            "proportional": 0, "always": 100, "fast": 900, "no_delay_ns": 1_000_000,
            "adjust_packets": 1, "quick_share": 1, "quick_delay": 0.01, "most_bdps": 0.3,
        },
    ),
    "rccc": (("transport={kind: uet, cc: rccc}",), {"first_bdps": 0.1}),
}  # fmt: skip
CASES = [(cc, name, value) for cc, (_, given) in RUNS.items() for name, value in given.items()]


def times_of(cc: str, out: Path, *changes: str) -> list[str]:
    """When each message of a crowded receiver's was whole."""
    load = ("traffic={kind: incast, senders: 7, bytes: 2MB, messages: 2}", "buffer.bytes=700KB")
    run = simulate_sparely("incast", *RUNS[cc][0], *load, *changes, out=out)
    assert run.result.flows.failed == 0
    return (run.out / "flows.csv").read_text().splitlines()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What comes without any of them."""
    return {cc: times_of(cc, tmp_path_factory.mktemp(cc)) for cc in RUNS}


@pytest.mark.parametrize("cc", RUNS)
def test_every_parameter_is_here_and_has_the_value_it_has_without_it(
    cc: str, plain: dict[str, list[str]], tmp_path: Path
) -> None:
    known = CONTROLS[cc].parameters
    assert {each.key for each in known} == set(RUNS[cc][1])
    usual = [f"transport.{cc}.{each.key}={each.usual:g}" for each in known]
    assert times_of(cc, tmp_path, *usual) == plain[cc]


@pytest.mark.by_day(8)
@pytest.mark.parametrize(("cc", "name", "value"), CASES)
def test_a_parameter_acts(
    cc: str, name: str, value: float, plain: dict[str, list[str]], tmp_path: Path
) -> None:
    assert times_of(cc, tmp_path, f"transport.{cc}.{name}={value}") != plain[cc]
