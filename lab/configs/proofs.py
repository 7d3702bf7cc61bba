"""The shortest run that shows a finding: packets lost, pauses, a circle; and the same run, cured.

A trial is no run of the whole fabric. It is what is around one port: a switch, a few hosts whose
cables are like the port's, and the values that the configuration has; then those of the cure. The
time in which a neighbour obeys, and for which a pause frame waits for the longest frame of another
class, lies on the cable, half of it each way. Times of the watchdog are a thousandth of what they
are.

A finding that no trial shows is advice: so is one about what the lab's model does not have.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from lab.configs.findings import Finding, Level
from lab.configs.trials import TRIALS, Content, Figures, Trial
from lab.configs.trials_ways import WAYS
from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.scratch import scratch
from lab.runs.run import measure
from lab.scenario import catalogue
from params.data import Data

_MAX_BYTES = 256_000_000  # on a cable or in a queue: more would be run for minutes
_USUAL = {"rate_gbps": 100.0, "delay_ns": 500, "mtu": 4096, "extra_ns": 2000, "cell": 1}
_TOO_MUCH = "it takes too many bytes, or too little is configured at the port, to be run"
_TRIALS = {**TRIALS, **WAYS}
_NO_RUN = {
    "mtu-differs": "all links of the lab have one MTU",
    "speed-differs": "a cable of the lab has one rate",
    "cable-differs": "a cable of the lab has one length; other findings say what headroom it needs",
    "cable-untold": "what is not configured cannot be run",
    "map-partial": "the lab's switches have whole maps",
    "neighbour-missing": "packets do not read DEVICE_NEIGHBOR",
    "neighbour-contradicts": "packets do not read DEVICE_NEIGHBOR",
    "pfc-nowhere": "there is nothing to be run",
    "pg-not-told": "what is not configured cannot be run",
    "alpha-range": "the lab's switches have no such alpha",
    "cnp-class": "adapters of the lab send notifications in the control class, whatever its DSCP",
    "watchdog-late": "adapters' time-outs are not known: the usual ones are compared with",
    "mtu-path": "all links of the lab have one MTU",
    "fec-differs": "a cable of the lab is up or down, whatever its FEC",
    "port-down": "a cable of the lab is up or down at both ends",
    "bgp-missing": "routes of the lab take every cable",
    "reference-missing": "the lab refuses what names nothing",
    "trim-lossless": "the lab's switches cut nothing of a class that is paused",
    "trim-queue": "the lab's switches cut nothing where anything is paused",
    "trim-untold": "what is not configured cannot be run",
    "adapter-cnp": "adapters of the lab send notifications in the control class",
}


class Proof(Data):
    """What became of a trial."""

    before: Figures | None
    after: Figures | None
    is_shown: bool
    note: str
    scenarios: tuple[Content, Content] | None = None

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "shown": self.is_shown, "note": self.note,
            "before": self.before and asdict(self.before),
            "after": self.after and asdict(self.after),
            "scenarios": self.scenarios and list(self.scenarios),
        }  # fmt: skip


def prove(findings: list[Finding]) -> list[tuple[Finding, Proof]]:
    """Each with its proof; those that need the same run share it. What none shows is advice."""
    known: dict[str, Proof] = {}
    proved = []
    for finding in findings:
        trial = trial_of(finding)
        if trial is None:
            proof = Proof(None, None, False, _NO_RUN.get(finding.rule, _TOO_MUCH))
        else:
            key = _key(finding, trial)
            proof = known[key] = known.get(key) or _tried(trial)
        level = Level.FAULT if proof.is_shown else Level.ADVICE
        proved.append((replace(finding, level=level), proof))
    return proved


def _key(finding: Finding, trial: Trial) -> str:
    return json.dumps([finding.rule, trial.before, trial.graphs], sort_keys=True)


def _tried(trial: Trial) -> Proof:
    try:
        return _carried_out(trial)
    except LabError as error:  # values that no scenario can have
        return Proof(None, None, False, f"it cannot be run: {error.message}")


def _carried_out(trial: Trial) -> Proof:
    with scratch() as space:
        graphs = []
        for at, graph in enumerate(trial.graphs or ()):
            graphs.append(space / f"graph{at}.json")
            graphs[-1].write_text(json.dumps(graph))
        last: tuple[Figures, Figures, tuple[Content, Content]] | None = None
        for before, after in zip(trial.before, trial.after, strict=True):
            found = _run(before, space, graphs[0] if graphs else None)
            cured = _run(after, space, graphs[1] if graphs else None)
            last = found, cured, (before, after)
            if trial.is_shown(found, cured):
                return Proof(found, cured, True, trial.note, last[2])
        assert last is not None
        tries = f"none of {len(trial.before)} runs shows it" if len(trial.before) > 1 else (
            "the run does not show it")  # fmt: skip
        return Proof(last[0], last[1], False, f"{trial.note}; {tries}".lstrip("; "), last[2])


def _run(content: Content, space: Path, graph: Path | None) -> Figures:
    changed = deepcopy(content)
    if graph is not None:
        changed["topology"]["path"] = str(graph)
    scenario = catalogue.made(changed)
    options = RunOptions(space, "sim")
    result = measure(scenario, options, Console(file=StringIO()))
    flows, pfc = result.flows, result.pfc
    return Figures(
        result.drops.total, pfc.paused_ns, pfc.xoff_frames, result.ecn.marked_packets,
        flows.completed, flows.count, result.duration_ns,
    )  # fmt: skip


def written(content: Content) -> str:
    """A trial's scenario as a file has it."""
    return yaml.safe_dump(content, sort_keys=False)


def trial_of(finding: Finding) -> Trial | None:
    """The trial of a finding; None: there is none."""
    make = _TRIALS.get(finding.rule)
    facts = {**_USUAL, **finding.facts}
    on_its_way = facts["rate_gbps"] / 8 * (2 * facts["delay_ns"] + facts["extra_ns"])
    sizes = (facts.get(name) or 0 for name in ("xoff", "kmin", "kmax", "limit"))
    if make is None or max(on_its_way, *sizes) > _MAX_BYTES:
        return None
    return make(facts)
