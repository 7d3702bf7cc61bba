"""Joules are those that follow by hand from what links carried and the published figures."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

import closlab as api
from lab.results.causes import Why
from lab.results.result import RESULT
from lab.results.tables import result_tables
from tests.lab.any_settings import written
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from topologies import Fabric

# Watts for each Gb/s of a module, as docs/energy.md has them; switches' figures with their sizes.
OPTICS = {"dr4": 16 / 800, "fr4": 5.358 / 400, "lpo": 6.5 / 800, "dac": 0.1 / 800}
SWITCHES = {
    "cisco-8201": (253.85 / 12800 + 0.9353 / 100, 3.200e-12, 13.36e-9),
    "arista-7280": (266.75 / 4800 + 0.6896 / 100, 12.15e-12, 9.336e-9),
    "nexus-9336": (284.97 / 3600 + 1.9034 / 100, 11.35e-12, 15.24e-9),
    "ncs-55a1": (328.44 / 2400 + 0.3268 / 100, 22.37e-12, 58.21e-9),
}
SEEDS = range(4200, 4208)


def by_hand(kept: dict[str, Any], fabric: Fabric) -> dict[str, float]:
    """By direction: the joules of the port that sends into it, of a result as it lies on disk."""
    model, links = kept["scenario"]["energy"], kept["scenario"]["link"]
    watts_of_switch, of_bit, of_packet = SWITCHES[model["switch"]]
    uses = {use["name"]: use for use in kept["links"]}
    assert len(uses) == 2 * len(fabric.links)
    ports = Counter(link.a.name for link in fabric.links)
    joules = {}
    for link in fabric.links:
        to_host = link.a.name.startswith("h")
        rate = (link.speed.rate_bps or 0) / 1e9 or links["rate_gbps"]
        kind = model["optics"]
        if not to_host:
            rate = (link.speed.rate_bps or 0) / 1e9 or links.get("fabric_rate_gbps", rate)
            kind = model.get("fabric_optics", kind)
        passed = [uses[link.up], uses[link.down]]
        moved = sum(8 * use["bytes"] * of_bit + use["packets"] * of_packet for use in passed)
        seconds, optics = kept["duration_ns"] * 1e-9, OPTICS[kind] * rate
        joules[link.down] = (optics + watts_of_switch * rate) * seconds + moved
        joules[link.up] = joules[link.down]
        if to_host:
            joules[link.up] = (optics + model["adapter_w"] / ports[link.a.name]) * seconds
    return joules


def check(out: Path) -> None:
    kept = json.loads((out / RESULT).read_text())
    expected = by_hand(kept, api.read(out).result.scenario.fabric())
    for use in kept["links"]:
        assert use["energy_j"] == pytest.approx(expected[use["name"]], rel=1e-5), use["name"]
    taken = kept["energy"]
    assert taken["total_j"] == pytest.approx(sum(expected.values()), rel=1e-5)
    parts = taken["optics_j"] + taken["switches_j"] + taken["adapters_j"]
    assert parts == pytest.approx(taken["total_j"], rel=1e-5)
    idle_j = taken["idle_w"] * kept["duration_ns"] * 1e-9
    assert idle_j + taken["moved_j"] == pytest.approx(taken["total_j"], rel=1e-5)
    if kept["flows"]["bytes"]:
        bits = 8 * kept["flows"]["bytes"]
        assert taken["per_bit_j"] == pytest.approx(taken["total_j"] / bits, rel=1e-5)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_scenario_takes_what_it_takes_by_hand(seed: int, tmp_path: Path) -> None:
    """Whatever fabric, faults and traffic: with devices that change from seed to seed."""
    optics, switches = list(OPTICS), list(SWITCHES)
    changes = (
        f"energy.optics={optics[seed % 4]}",
        f"energy.fabric_optics={optics[seed // 2 % 4]}",
        f"energy.switch={switches[seed % 4]}",
        f"energy.adapter_w={seed % 7 * 5}",
    )
    simulate(written(seed, tmp_path), *changes, out=tmp_path / "run")
    check(tmp_path / "run")


@pytest.mark.slow
def test_on_mininet_as_well(tmp_path: Path) -> None:
    done = closlab("run", "hello", "--engine", "mininet", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    check(tmp_path)


def test_a_job_has_its_share(tmp_path: Path) -> None:
    """Of two jobs, by what each moved and how long it took."""
    job = "{{kind: job, name: {}, ranks: {}, steps: 2, compute_ns: {}, collective: {}}}"
    reduce, exchange = "{op: all-reduce, bytes: 100KB}", "{op: all-to-all, bytes: 40KB}"
    parts = job.format("a", 3, "10us", reduce), job.format("b", 4, "90us", exchange)
    found = simulate(
        "hello", f"traffic={{kind: mix, parts: [{', '.join(parts)}]}}", out=tmp_path
    ).result
    assert found.energy and found.energy.jobs_j and found.jobs and found.parts
    assert found.energy.jobs_j.keys() == found.jobs.keys()
    assert len(found.jobs) == 2
    for name, joules in found.energy.jobs_j.items():
        whole = found.energy.idle_w * (found.jobs[name].jct_ns or 0) * 1e-9 + found.energy.moved_j
        share = found.parts[name].bytes / found.flows.bytes
        assert joules == pytest.approx(share * whole, rel=1e-5)


def test_a_run_that_was_kept_before_has_them_too(tmp_path: Path) -> None:
    run = simulate("hello", out=tmp_path)
    content = json.loads((tmp_path / RESULT).read_text())
    del content["energy"], content["scenario"]["energy"]
    for use in content["links"]:
        del use["energy_j"]
    (tmp_path / RESULT).write_text(json.dumps(content))
    assert api.read(tmp_path).result == run.result


def test_why_says_what_lost_time_takes() -> None:
    known = {
        "what": "run",
        "start_ns": 0,
        "took_ns": 3000,
        "alone_ns": 1000,
        "lost_ns": 2000,
        "idle_w": 500.0,
    }
    assert "take 1 mJ, even where nothing moves" in str(Why.model_validate(known))
    assert "even where" not in str(Why.model_validate({**known, "idle_w": None}))


def test_the_terminal_tells_it_in_a_line(tmp_path: Path) -> None:
    run, console = simulate("hello", out=tmp_path), Console(file=io.StringIO(), width=200)
    result_tables(console, run.experiment.fabric, run.result)
    lines = cast("io.StringIO", console.file).getvalue().splitlines()
    (line,) = (line for line in lines if line.startswith("Energy: "))
    assert re.search(r"Energy: [\d.]+ mJ \(switches .* a bit, 97 % of it as idle ports", line)
