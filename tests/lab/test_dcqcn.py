"""DCQCN in a fabric: rate, queue and shares are those of an independent model of the whole loop."""

from __future__ import annotations

import io
from pathlib import Path
from statistics import fmean

import pytest
from rich.console import Console

from controller.tables import SwitchSite, pool_of
from lab.engines import RunOptions
from lab.errors import ScenarioError
from lab.progress import Stages
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.controls import SECTIONS
from lab.scenario.experiment import Experiment
from params.data import Data
from tests.lab.conftest import closlab
from tests.traffic.dcqcn_model import Marking, profile, share

MS = 1_000_000
MARKING = Marking(100e3, 400e3, 0.2)
BOUND = 0.05


class Case(Data):
    """N senders to one receiver, all at one switch, of one profile, between two times.

    A message holds 2 GB: two senders at 100 Gb/s end after 320 ms.
    """

    name: str
    senders: int
    gbps: int = 100
    settled_ms: int = 20
    until_ms: int = 60
    marking: Marking = MARKING

    def experiment(self, seed: int) -> Experiment:
        """The same as a scenario."""
        mark = self.marking
        hosts = self.senders + 1
        marks = f"kmin: {mark.kmin:.0f}, kmax: {mark.kmax:.0f}, pmax: {mark.pmax}"
        changes = (
            f"topology={{kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: {hosts}}}",
            f"link.rate_gbps={self.gbps}",
            f"traffic={{kind: incast, senders: {self.senders}, bytes: 2GB}}",
            "buffer.bytes=32MB",
            f"ecn={{enabled: true, {marks}}}",
            f"transport={{cc: dcqcn, dcqcn: {self.name}, window: 100000, rto_ns: 1s}}",
            "measures.series_ns=5us",
            f"limit_ns={self.until_ms * MS}",
            f"seed={seed}",
        )
        return Experiment.of(catalogue.load("incast", changes))


class Came(Data):
    """What a bottleneck came to."""

    gbps: float
    queue: float
    shares: tuple[float, ...]


def simulated(case: Case, out: Path, seed: int) -> Came:
    """In closlab: its endpoints, its switch with the compiled P4."""
    outcome = outcome_of(
        case.experiment(seed),
        RunOptions(out=out, engine="sim"),
        Stages(Console(file=io.StringIO())),
    )
    notes = [note for note in outcome.notes if note.time_ns >= case.settled_ms * MS]
    into = [note for note in notes if note.link == "leaf1>h1"]
    first, last = into[0], into[-1]
    sent: dict[str, list[int]] = {}
    for note in notes:
        if note.link.endswith(">leaf1") and note.link[0] == "h" and note.link != "h1>leaf1":
            sent.setdefault(note.link, []).append(note.bytes)
    carried = [each[-1] - each[0] for each in sent.values()]
    return Came(
        gbps=(last.bytes - first.bytes) * 8 / (last.time_ns - first.time_ns),
        queue=fmean(note.queue_bytes for note in into),
        shares=tuple(each / sum(carried) for each in carried),
    )


def modelled(case: Case, seed: int) -> Came:
    """In the model."""
    experiment = case.experiment(seed)
    (leaf,) = (switch for switch in experiment.fabric.switches if switch.name == "leaf1")
    line = case.gbps * 1e9
    found = share(
        profile(case.name, line),
        case.senders,
        line,
        case.marking,
        settled_ns=case.settled_ms * MS,
        until_ns=case.until_ms * MS,
        pool=pool_of(SwitchSite(experiment.fabric, leaf, experiment.settings)),
        seed=seed,
    )
    return Came(found.gbps, found.queue, found.shares)


def configured(*changes: str) -> dict[str, str]:
    """What the endpoints of an incast are told of DCQCN."""
    experiment = Experiment.of(catalogue.load("incast", ("transport.cc=dcqcn", *changes)))
    words = experiment.plan(0, carries_payload=False).config.words().split()
    pairs = (word.removeprefix("dcqcn-").split("=") for word in words if "dcqcn" in word)
    return dict(pairs)


@pytest.mark.parametrize(
    ("written", "profile"),
    [
        ("transport.dcqcn=conweave", "conweave"),
        ("transport.dcqcn=hpcc-paper", "hpcc-ns3"),  # as it was once called
        ("transport.dcqcn={profile: mlx5}", "mlx5"),
        ("transport.dcqcn.profile=hpcc-ns3", "hpcc-ns3"),
        ("transport.window=512", "paper"),
    ],
)
def test_a_profile_is_named(written: str, profile: str) -> None:
    assert configured(written) == {"profile": profile}


def test_every_parameter_can_be_set() -> None:
    values = {
        "reaction": ("periodic", "periodic"),
        "cnp_interval_ns": ("4us", "4000"),
        "alpha_interval_ns": ("2us", "2000"),
        "cut_interval_ns": ("8us", "8000"),
        "increase_interval_ns": ("1.5ms", "1500000"),
        "byte_counter": ("2MB", "2000000"),
        "g": ("0.0625", "0.0625"),
        "first_alpha": ("0.5", "0.5"),
        "fast_rounds": ("3", "3"),
        "additive_mbps": ("7.5", "7500000"),
        "hyper_mbps": ("75", "75000000"),
        "minimum_mbps": ("0.5", "500000"),
        "clamp_target": ("false", "false"),
    }
    given = [f"transport.dcqcn.{key}={written}" for key, (written, _) in values.items()]
    expected = {
        key.removesuffix("_ns").removesuffix("_mbps").replace("_", "-"): said
        for key, (_, said) in values.items()
    }
    assert configured(*given) == {"profile": "paper"} | expected
    assert {"profile", *values} == set(SECTIONS["dcqcn"].model_fields)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("transport.dcqcn=hpcc", "'hpcc-ns3'"),
        ("transport.dcqcn.clamp_targets=true", "did you mean 'transport.dcqcn.clamp_target'"),
        ("transport.dcqcn.g=0", "must be more than 0"),
    ],
)
def test_what_makes_no_sense_is_refused(written: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        configured(written)
    assert complaint in caught.value.message


def test_dcqcn_without_marks_says_that_it_is_in_vain(tmp_path: Path) -> None:
    small = ("--engine", "sim", "--set", "traffic.bytes=100KB", "--out", str(tmp_path))
    done = closlab("run", "incast", "--set", "transport.cc=dcqcn", *small)
    assert done.stderr.startswith("closlab: DCQCN waits for marks")
    assert "In vain: DCQCN waits for marks" in done.stderr
    assert "DCQCN waits for marks" in (tmp_path / "report.html").read_text()
    marked = ("--set", "ecn.enabled=true")
    assert (
        "DCQCN waits"
        not in closlab("run", "incast", "--set", "transport.cc=dcqcn", *marked, *small).stderr
    )


def means(came: list[Came]) -> tuple[float, float]:
    """Rate and queue, over several seeds."""
    return fmean(each.gbps for each in came), fmean(each.queue for each in came)


def hold(case: Case, out: Path, seeds: range) -> None:
    """Rate and queue are the model's, within the bound."""
    own = means([simulated(case, out, seed) for seed in seeds])
    model = means([modelled(case, seed) for seed in seeds])
    assert own == pytest.approx(model, rel=BOUND), f"{case}, seeds {seeds}"


@pytest.mark.parametrize(
    "name",
    ["paper", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hpcc-ns3", "conweave"))],
)
def test_eight_to_one_is_the_model_s(name: str, tmp_path: Path) -> None:
    hold(Case(name, 8), tmp_path, range(1, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "seeds"),
    [
        (Case("hpcc-ns3", 2, settled_ms=50, until_ms=300), 2),  # so few need long to average
        (Case("conweave", 2, settled_ms=50, until_ms=300), 2),
        (Case("paper", 8, marking=Marking(100e3, 100e3, 1)), 3),  # a step, as DCTCP has it
        (Case("conweave", 8, marking=Marking(100e3, 100e3, 1)), 3),
        (Case("paper", 64), 3),
        (Case("hpcc-ns3", 64, settled_ms=150, until_ms=250), 2),  # till then pauses rule
        (Case("conweave", 64, settled_ms=80, until_ms=140), 2),
        (Case("mlx5", 8, settled_ms=100, until_ms=400), 12),  # queues 9 % apart by seed
        (Case("mlx5", 64, settled_ms=150, until_ms=250), 2),
    ],
    ids=lambda value: f"{value.name}-{value.senders}" if isinstance(value, Case) else "",
)
def test_many_to_one_is_the_model_s(case: Case, seeds: int, tmp_path: Path) -> None:
    hold(case, tmp_path, range(1, seeds + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "hpcc-ns3", "conweave"])
@pytest.mark.parametrize("senders", [4, 16])
@pytest.mark.parametrize(
    ("gbps", "marking", "longer"),  # it settles by packets and by queues, not by the clock
    [
        (25, Marking(25e3, 100e3, 0.2), 4),
        (100, Marking(400e3, 1600e3, 0.2), 2),
        (400, Marking(400e3, 1600e3, 0.2), 1),
    ],
)
def test_any_speeds_and_senders_are_the_model_s(
    name: str, senders: int, gbps: int, marking: Marking, longer: int, tmp_path: Path
) -> None:
    case = Case(name, senders, gbps, 30 * longer, 90 * longer, marking)
    hold(case, tmp_path, range(1, 5))  # one in four may come to its share much later


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "gbps", "seconds"),
    [("paper", 25, 1), ("hpcc-ns3", 25, 1), ("conweave", 25, 1), ("mlx5", 10, 6), ("mlx5", 25, 8)],
)
def test_two_flows_share_alike(name: str, gbps: int, seconds: int, tmp_path: Path) -> None:
    """On average over so long, within 2 %.

    mlx5 takes longer: it adds 5 Mb/s at a time whatever the link, so that what cuts have drawn
    apart by lot comes together over seconds. Neither flow is the better off for it.
    """
    case = Case(name, 2, gbps=gbps, settled_ms=200, until_ms=200 + 1000 * seconds)
    off = [2 * simulated(case, tmp_path, seed).shares[0] - 1 for seed in range(1, 5)]
    assert fmean(map(abs, off)) <= 0.02, off


@pytest.mark.slow
def test_mlx5_is_as_far_apart_for_a_while_as_the_model_says(tmp_path: Path) -> None:
    """Over a quarter of a second two flows are as unfair as the model's: by 2 to 3 %."""
    case = Case("mlx5", 2, gbps=10, settled_ms=200, until_ms=450)
    seeds = range(1, 25)
    own = [abs(2 * simulated(case, tmp_path, seed).shares[0] - 1) for seed in seeds]
    model = [abs(2 * modelled(case, seed).shares[0] - 1) for seed in seeds]
    assert fmean(own) == pytest.approx(fmean(model), rel=0.6), (own, model)  # 24 draws each
