"""Roots that `closlab why` tells of scenarios by lot, taken away by other hands.

    python -m tests.lab.any_causes --seed 1 --runs 100

Each seed is one of chaos' scenarios. The message that was slowed most is asked about. Then what is
told is taken away share by share, without any of the code that found it: a fault is left out of the
scenario's keys, a message is not in the list of flows. The message has to take as long as was told,
within a tenth of the time it lost. Messages that others wait for cannot be left out: those shares
are counted, and not judged.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import closlab
from lab.errors import LabError
from lab.results.causes import Root, Why
from lab.runs.chaos import drawn
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

_WITHIN = 0.1  # of the time lost
_UNJUDGED = "not to be judged"

Content = dict[str, Any]


def between(run: closlab.Run, why: Why) -> list[Content]:
    """All messages between the two, in the order of the schedule."""
    flows = closlab.records(run.flows)
    return [flow for flow in flows if (flow["src"], flow["dst"]) == (why.src, why.dst)]


def took(content: Content, why: Why, place: int) -> int | None:
    """How long the message takes in a scenario; none if it does not arrive."""
    found = between(closlab.run(content), why)[place]["fct_ns"]
    return None if found is None else int(found)


def in_flows(content: Content) -> Content | None:
    """The same traffic as flows that can be left out one by one; none if they wait for others."""
    experiment = Experiment.of(catalogue.made(copy.deepcopy(content)))
    schedule, hosts = experiment.schedule, [host.name for host in experiment.fabric.hosts]
    if len(schedule.wait) or any(map(int.__eq__, schedule.src, schedule.dst)):
        return None
    classes = {activity.priority for activity in schedule.activities}
    if len(schedule.activities) > 1 or len(classes) > 1:
        return None
    flows = [
        {"src": hosts[src], "dst": hosts[dst], "bytes": size, "at_ns": delay}
        for src, dst, size, delay in zip(
            schedule.src, schedule.dst, schedule.size, schedule.delay_ns, strict=True
        )
    ]
    return content | {"traffic": {"kind": "flows", "flows": flows, "priority": min(classes)}}


def without(content: Content, roots: list[Root]) -> Content | None:
    """The scenario, these taken out of it; none if that takes more than leaving things out."""
    found = copy.deepcopy(content)
    gone = {int(key.split(".")[1]) for root in roots for key in root.keys if root.kind == "fault"}
    found["faults"] = [f for at, f in enumerate(found.get("faults", ())) if at not in gone]
    for root in roots:
        if root.kind == "loss":
            found.pop("loss")
        elif root.kind == "slow link":
            found["link"]["slow"].pop(root.keys[0].removeprefix("link.slow."))
        elif root.kind == "setting":
            section, _, key = root.keys[0].partition(".")
            found[section].pop(key)
            if key == "cc":
                found[section][key] = "none"
    names = {name for root in roots if root.kind == "messages" for name in root.keys}
    if names:
        flows = found["traffic"].get("flows")
        if flows is None:
            return None
        found["traffic"]["flows"] = [f for f in flows if f"{f['src']}-{f['dst']}" not in names]
    return found


def judged(seed: int) -> tuple[list[str], str]:
    """What came of each share, and a line on all of it."""
    content = drawn(seed, "sim").content() | {"measures": {"flows": True, "series": False}}
    with tempfile.TemporaryDirectory() as folder:
        run = closlab.run(content, out=folder)
        why = run.why()
        place = [flow["start_ns"] for flow in between(run, why)].index(why.start_ns)
    if not why.shares:
        return ["nothing lost" if why.lost_ns <= 0.02 * why.alone_ns else "no root"], str(why)
    apart = in_flows(content)
    if apart is not None and took(apart, why, place) != why.took_ns:
        apart = None  # other queue pairs: another run
    verdicts, roots = [], list[Root]()
    for share in why.shares:
        roots += share.roots
        names_itself = any(f"{why.src}-{why.dst}" in root.keys for root in roots)
        needs_flows = any(root.kind == "messages" for root in roots)
        base = apart if needs_flows else content
        thinner = None if base is None or names_itself else without(base, roots)
        if thinner is None:
            verdicts.append(_UNJUDGED)
            continue
        after = took(thinner, why, place)
        off = abs((after or 0) - (share.took_ns or 0))
        is_right = (after is None) == (share.took_ns is None) and off <= _WITHIN * why.lost_ns
        verdicts.append("right" if is_right else f"WRONG: told {share.took_ns}, took {after}")
    text = "; ".join(f"{share.share:.0%} {share.named}" for share in why.shares)
    return verdicts, f"lost {why.lost_ns:,} ns: {text}; rest {why.rest_ns / why.lost_ns:.0%}"


def main() -> int:
    """Make so many; how many shares were wrong decides the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counted = Counter[str]()
    first = Counter[str]()
    for seed in range(given.seed, given.seed + given.runs):
        began = time.monotonic()
        try:
            verdicts, text = judged(seed)
        except LabError as error:
            verdicts, text = ["refused"], str(error)
        counted.update(verdict.partition(":")[0] for verdict in verdicts)
        first[verdicts[0].partition(":")[0]] += 1
        took_s = time.monotonic() - began
        print(f"seed {seed} ({took_s:.1f} s): {', '.join(verdicts)}: {text}", flush=True)
    print(f"first roots: {dict(first)}; all shares: {dict(counted)}")
    return 1 if counted["WRONG"] else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.exit(main())
