"""What switches are told of a scenario: how long frames can get."""

from pathlib import Path

import pytest

from lab import catalogue
from lab.experiment import Experiment
from tests.fabric.runs import CAPTURED, Place, Runner


@pytest.mark.parametrize(
    "topology",
    [
        "{kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1}",
        "{kind: fat-tree, k: 4}",
    ],
)
@pytest.mark.parametrize(
    "change", ["int.share=1", "transport.cc=hpcc", "pfc.enabled=true"], ids=str
)
def test_the_longest_frame_is_known_to_the_byte(topology: str, change: str, tmp_path: Path) -> None:
    """A packet that is a whole message, under conga, from one end of the fabric to the other."""
    changes = (f"topology={topology}", "lb.policy=conga", change, CAPTURED)
    last = Experiment.of(catalogue.load("hello", changes)).fabric.hosts[-1]
    flow = f"traffic={{kind: flows, flows: [{{src: h1, dst: {last}, bytes: 4096}}]}}"
    run = Runner(Place.SIM, tmp_path)("hello", *changes, flow)
    longest = run.longest_frame
    most = run.experiment.settings.max_frame
    assert longest == most if "int" in change else longest < most
