"""Claims: verdicts follow from what runs find, and are the same each time."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lab.claims import CLAIMS, Claim, Found, Verdict
from lab.claims import loss as losses
from lab.claims.claim import UNSOURCED
from lab.claims.court import run_case
from lab.scenario import catalogue
from tests.lab.conftest import CLOSLAB, closlab, session_of
from tests.waiting import LONG_S

BY_KEY = {claim.key: claim for claim in CLAIMS}
Finder = Callable[[str], Found]

# What the simulator found, in full, when this was written; `closlab test --slow` finds out anew.
VERDICTS = {
    "loss-13": Verdict.SOMETIMES,
    "loss-50": Verdict.FAILS,
    "loss-5": Verdict.SOMETIMES,
    "loss-half": Verdict.SOMETIMES,
    "productivity": Verdict.SOMETIMES,
    "slow-link": Verdict.HOLDS,
    "incast": Verdict.SOMETIMES,
    "ecmp": Verdict.HOLDS,
    "victim": Verdict.HOLDS,
    "pfc-ecn": Verdict.SOMETIMES,
    "no-pfc": Verdict.HOLDS,
    "neighbour": Verdict.HOLDS,
    "oversubscription": Verdict.SOMETIMES,
    "rails": Verdict.HOLDS,
    "energy": Verdict.HOLDS,
    "scale-up": Verdict.SOMETIMES,
}


def judged(key: str, find: Finder) -> Verdict:
    """The verdict on made-up findings."""
    claim = BY_KEY[key]
    judgement = claim.judge({name: find(name) for name in claim.cases})
    assert judgement.finding and judgement.figures
    assert judgement.drawing.render().startswith("<svg")
    return judgement.verdict


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_every_claim_has_words_and_sound_experiments(claim: Claim) -> None:
    assert claim.words.endswith(".")
    assert claim.experiment.endswith(".")
    assert claim.source.endswith(".")
    can_be_looked_up = re.search(
        r"https://\S+\.\S+/|arXiv:\d{4}\.\d{5}|doi:10\.\d{4}/", claim.source
    )
    assert can_be_looked_up or claim.source.startswith(UNSOURCED)
    cases = list(claim.cases.values())
    for case in (cases[0], cases[-1]):
        catalogue.load(case.scenario, case.changes)


# --- loss ----------------------------------------------------------------------------------------


def lossy(utilisation: Mapping[str, Mapping[float, float]]) -> Finder:
    """Findings with these utilisations, and 0.7 where none is given."""

    def find(name: str) -> Found:
        *way, rate, _ = name.split(", ")
        return Found(utilisation=utilisation.get(", ".join(way), {}).get(float(rate), 0.7))

    return find


def at(rate: float, utilisation: float, *ways: str) -> Finder:
    return lossy({way: {rate: utilisation} for way in ways or tuple(losses.WAYS)})


@pytest.mark.parametrize(
    ("key", "rate", "holding", "failing"),
    [
        ("loss-13", 0.001, 0.7 * 0.87, 0.69),
        ("loss-13", 0.001, 0.7 * 0.87, 0.2),
        ("loss-50", 0.001, 0.35, 0.6),
        ("loss-5", 0.01, 0.04, 0.06),
        ("loss-half", 0.01, 0.3, 0.4),
    ],
)
def test_loss_is_judged_by_its_cost(key: str, rate: float, holding: float, failing: float) -> None:
    assert judged(key, at(rate, holding)) is Verdict.HOLDS
    assert judged(key, at(rate, holding, "go-back-n")) is Verdict.SOMETIMES
    assert judged(key, at(rate, failing)) is Verdict.FAILS


def test_what_other_seeds_would_move_is_told() -> None:
    """Some seeds wait for a time-out, some do not: three of twelve at 0.2, the rest at 0.6."""

    def find(name: str) -> Found:
        way, rate, seed = name.split(", ")
        waits = way == "selective (4.2 ms)" and float(rate) == 0.001 and int(seed) in {2, 7, 9}
        return Found(utilisation=0.7 if float(rate) == 0 else 0.2 if waits else 0.6)

    claim = BY_KEY["loss-13"]
    finding = claim.judge({name: find(name) for name in claim.cases}).finding
    assert "14 % with selective, " in finding
    assert "29 % (± 7.5 %) with selective (4.2 ms). " in finding


def test_the_formula_says_what_its_sources_say() -> None:
    """At 0.3 exposed: go-back-n costs 13 % at 0.1 % and leaves 28 % at 1 %; restart fits both."""
    assert losses.formula_cost(0.3, losses.go_back_n(0.001)) == pytest.approx(0.13, abs=0.005)
    assert 0.7 * (1 - losses.formula_cost(0.3, losses.go_back_n(0.01))) == pytest.approx(
        0.28, abs=0.01
    )
    assert losses.formula_cost(0.3, losses.go_back_0(0.001)) == pytest.approx(0.13, abs=0.005)
    assert 0.7 * (1 - losses.formula_cost(0.3, losses.go_back_0(0.01))) < 0.05


# --- the fabric ----------------------------------------------------------------------------------


def test_productivity() -> None:
    def poor(utilisation: float) -> Finder:
        return lambda name: Found(utilisation=0.7 if name == "a good network" else utilisation)

    assert judged("productivity", poor(0.42)) is Verdict.HOLDS
    assert judged("productivity", poor(0.65)) is Verdict.FAILS
    assert judged("productivity", poor(0.1)) is Verdict.FAILS


@pytest.mark.parametrize("fitting", range(7))
def test_productivity_is_judged_over_all_that_was_tried(fitting: int) -> None:
    """Some network can be made to cost anything: that most of them fit is the least."""
    names = [name for name in BY_KEY["productivity"].cases if name != "a good network"]
    assert len(names) == 6

    def find(name: str) -> Found:
        return Found(utilisation={"a good network": 0.7}.get(name, costs.get(name, 0.65)))

    costs = dict.fromkeys(names[:fitting], 0.42)
    expected = Verdict.HOLDS if fitting == 6 else Verdict.SOMETIMES
    assert judged("productivity", find) is (expected if fitting > 3 else Verdict.FAILS)


def test_slow_link() -> None:
    assert judged("slow-link", lambda name: Found(busbw_gbps=94 * float(name))) is Verdict.HOLDS
    steady = judged("slow-link", lambda _: Found(busbw_gbps=94))
    assert steady is Verdict.SOMETIMES  # without a slow link it is as fast as without


def test_incast() -> None:
    def overflows_after(us: int, *but: str) -> Finder:
        def find(name: str) -> Found:
            buffer, _, moment = name.rpartition(", ")
            return Found(drops=int(int(moment) >= us and buffer not in but))

        return find

    assert judged("incast", overflows_after(20)) is Verdict.HOLDS
    assert judged("incast", overflows_after(20, "32 MB")) is Verdict.SOMETIMES
    assert judged("incast", overflows_after(2000)) is Verdict.FAILS


def test_ecmp() -> None:
    def spread(*idle: str, slow_ns: float = 2e6) -> Finder:
        def find(name: str) -> Found:
            is_idle = name.startswith(idle)
            links = {
                f"leaf{leaf}>spine{spine}": 0 if is_idle and spine > 2 else 100
                for leaf in range(1, 5)
                for spine in range(1, 5)
            }
            return Found(links=links, fct_max_ns=slow_ns if "ecmp" in name else 1e6)

        return find

    assert judged("ecmp", spread("16 elephants, ecmp")) is Verdict.HOLDS
    assert judged("ecmp", spread("16 elephants, ecmp", "256 flows")) is Verdict.SOMETIMES
    assert judged("ecmp", spread("none of them")) is Verdict.FAILS
    assert judged("ecmp", spread("16 elephants, ecmp", slow_ns=1e6)) is Verdict.FAILS


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [
        ({"no PFC, no ECN": 9, "ECN alone": 5, "PFC alone": 5, "PFC and ECN": 0}, Verdict.HOLDS),
        (
            {"no PFC, no ECN": 9, "ECN alone": 5, "PFC alone": 0, "PFC and ECN": 0},
            Verdict.SOMETIMES,
        ),
        ({"no PFC, no ECN": 9, "ECN alone": 0, "PFC alone": 0, "PFC and ECN": 0}, Verdict.FAILS),
        ({"no PFC, no ECN": 9, "ECN alone": 5, "PFC alone": 5, "PFC and ECN": 1}, Verdict.FAILS),
    ],
)
def test_pfc_and_ecn(drops: dict[str, int], verdict: Verdict) -> None:
    found = Found(part_fct_ns={"bystander": 1e5}, paused_ns=10)
    assert judged("pfc-ecn", lambda name: replace(found, drops=drops[name])) is verdict


@pytest.mark.parametrize(
    ("paused_ns", "free_ns", "verdict"),
    [
        (9e5, 2e5, Verdict.HOLDS),
        (9e5, 9e5, Verdict.SOMETIMES),  # it suffers, but not from pauses alone
        (3e5, 2e5, Verdict.FAILS),
    ],
)
def test_victim(paused_ns: float, free_ns: float, verdict: Verdict) -> None:
    def find(name: str) -> Found:
        victim_ns = {"nobody else": 1.7e5, "with PFC": paused_ns, "without PFC": free_ns}[name]
        return Found(fct_max_ns=victim_ns, part_fct_ns={"bystander": victim_ns})

    assert judged("victim", find) is verdict


@pytest.mark.parametrize(
    ("mrc", "pfc", "dcqcn", "verdict"),
    [
        (0.98, 0.2, 0.75, Verdict.HOLDS),
        (0.98, 0.2, 0.99, Verdict.SOMETIMES),  # DCQCN does as well
        (0.96, 0.2, 0.75, Verdict.FAILS),
    ],
)
def test_neighbour(mrc: float, pfc: float, dcqcn: float, verdict: Verdict) -> None:
    """By the worst of seeds for who is to spare it, by the median for who is not."""
    keeps = {"MRC": mrc, "PFC alone": pfc, "PFC and DCQCN": dcqcn}

    def find(name: str) -> Found:
        school, _, setting = name.rpartition(", ")
        if setting == "alone":
            return Found(fct_max_ns=1e5)
        worse = 1.0 if setting == "seed 3" or school != "MRC" else 1.01
        worse *= 3 if setting == "seed 4" and school != "MRC" else 1
        return Found(part_fct_ns={"bystander": 1e5 / keeps[school] / worse})

    assert judged("neighbour", find) is verdict


def test_oversubscription() -> None:
    def takes(**factors: float) -> Finder:
        def find(name: str) -> Found:
            op, _, spines = name.rpartition(", ")
            factor = factors.get(op.partition("-")[0].partition(" ")[0], 1.0)
            return Found(jct_ns=round(1e6 * (factor if spines == "1" else 1)))

        return find

    assert judged("oversubscription", takes(all=3, ring=3)) is Verdict.HOLDS
    assert judged("oversubscription", takes(all=3)) is Verdict.SOMETIMES
    assert judged("oversubscription", takes()) is Verdict.FAILS


def test_energy() -> None:
    """Joules that go with the time, or with something else."""
    with_time = {
        "with": Found(duration_ns=300, energy_j=3.2),
        "without": Found(duration_ns=100, energy_j=1),
    }
    assert judged("energy", lambda name: with_time[name.split(", ")[-1]]) is Verdict.HOLDS
    by_load = {**with_time, "with": Found(duration_ns=300, energy_j=1.5)}
    assert judged("energy", lambda name: by_load[name.split(", ")[-1]]) is Verdict.FAILS


def test_scale_up() -> None:
    """Quicker always, never, or where messages are short."""

    def takes(short_ns: int, long_ns: int) -> Finder:
        def find(name: str) -> Found:
            is_long = name.startswith(("15,360", "experts"))
            sue_ns = long_ns if is_long else short_ns
            return Found(duration_ns=100 if name.endswith("RoCEv2") else sue_ns)

        return find

    assert judged("scale-up", takes(50, 90)) is Verdict.HOLDS
    assert judged("scale-up", takes(50, 104)) is Verdict.SOMETIMES
    assert judged("scale-up", takes(101, 104)) is Verdict.FAILS


def test_rails() -> None:
    def jobs(random_ns: float, through_spines: int) -> Finder:
        def find(name: str) -> Found:
            aligned = name.endswith("aligned")
            links = {"h1>leaf1": 100, "leaf1>spine1": through_spines if aligned else 50}
            return Found(jct_ns=1_000_000 if aligned else round(random_ns), links=links)

        return find

    assert judged("rails", jobs(1.5e6, 0)) is Verdict.HOLDS
    assert judged("rails", jobs(1.5e6, 10)) is Verdict.FAILS
    assert judged("rails", jobs(1.01e6, 0)) is Verdict.FAILS


# --- in earnest ----------------------------------------------------------------------------------


def test_the_same_case_finds_the_same() -> None:
    case = BY_KEY["pfc-ecn"].cases["PFC and ECN"]
    first = run_case(case)
    assert isinstance(first, Found)
    assert first.is_whole and first.drops == 0
    assert run_case(case) == first


def test_a_job_that_does_not_end_is_given_what_it_can_have_at_most() -> None:
    case = losses.CASES[losses.name_of("go-back-0", 0.0, 1)]
    found = run_case(replace(case, changes=(*case.changes, "limit_ns=1800us")))
    assert isinstance(found, Found)
    assert not found.is_whole
    assert found.utilisation == pytest.approx(losses.STEPS * losses.COMPUTE_NS / 1_800_000)


def test_the_command_keeps_figures_commands_and_pictures(tmp_path: Path) -> None:
    done = closlab("claims", "slow-link", "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "claims.json").read_text())
    assert json.loads(done.stdout) == content
    (claim,) = content["claims"]
    assert claim["verdict"] == "holds"
    assert claim["figures"]["bus bandwidth kept at 25%"] == pytest.approx(0.25, abs=0.025)
    assert "closlab run degraded-uplink --engine sim" in claim["commands"]["0.25"]
    html = (tmp_path / "claims.html").read_text()
    assert "<svg" in html and claim["finding"].split(":")[0] in html


def test_an_unknown_claim_is_refused(tmp_path: Path) -> None:
    done = closlab("claims", "slow-lnik", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "there is no claim 'slow-lnik'; did you mean 'slow-link'?" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_all_verdicts_and_the_same_numbers_every_time(tmp_path: Path) -> None:
    contents = []
    for processes in ("2", "1"):
        out = tmp_path / processes
        done = closlab("claims", "--processes", processes, "--out", str(out), timeout_s=1800)
        assert done.returncode == 0, done.stderr
        contents.append((out / "claims.json").read_text())
    assert contents[0] == contents[1]
    found = {claim["key"]: claim["verdict"] for claim in json.loads(contents[0])["claims"]}
    assert found == {key: verdict.value for key, verdict in VERDICTS.items()}


@pytest.mark.slow
@pytest.mark.clock
def test_an_interrupt_ends_the_runs_at_once_and_says_what_is_kept(tmp_path: Path) -> None:
    """All processes of the terminal get it; none goes on, and none tells a traceback."""
    trial = subprocess.Popen(
        [*CLOSLAB, "claims", "loss-5", "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + LONG_S
        while len(session_of(trial.pid)) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        os.killpg(trial.pid, signal.SIGINT)
        _, said = trial.communicate(timeout=LONG_S)
    finally:
        trial.kill()
    assert trial.returncode == 130
    assert said.endswith("Interrupted before any claim had all its runs; nothing is kept.\n")
    assert "Traceback" not in said
    deadline = time.monotonic() + LONG_S
    while (living := session_of(trial.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert living == []


@pytest.mark.slow
def test_workers_end_with_who_was_killed(tmp_path: Path) -> None:
    trial = subprocess.Popen(
        [*CLOSLAB, "claims", "loss-5", "--processes", "2", "--out", str(tmp_path)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + LONG_S
    while len(session_of(trial.pid)) < 4 and time.monotonic() < deadline:  # one counts semaphores
        time.sleep(0.1)
    time.sleep(1)
    trial.kill()
    trial.wait()
    deadline = time.monotonic() + LONG_S
    while (living := session_of(trial.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert living == []
