"""Any small fabric emulated on several machines: nothing is lost, and takes what it takes.

    python -m tests.lab.any_machines --count 20 --seed 1
    python -m tests.lab.any_machines --only 7 12

draws a fabric, traffic, how many machines, what the network between them does, their clocks (ahead
of ours, and drifting), and for some what befalls the run: a part killed, Ctrl-C, who leads killed.
The simulator, which knows of no machines, says what is to come of each. Without a misfortune every
message is delivered whole; where the network loses nothing, nothing is dropped or sent again; and
what is to be believed takes, message by message, what the simulator says, to a tenth and what the
run says of its clocks. Where the network loses, that is told, and where clocks are worse than a
packet's time, that. With one the run ends and says whose part ended. Never is anything left.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from lab.engines import RunOptions
from lab.engines.mininet.endpoints import most_late_ns
from lab.errors import LabError
from lab.runs import lots
from lab.runs.machines.lead import check_shareable, shares
from lab.scenario.catalogue import made
from lab.scenario.experiment import Experiment
from params.data import Data
from tests.lab.machines_here import on_machines
from tests.lab.simulated import Run, simulate

_FACTOR = 0.1  # of a completion time, that engines may differ by
_MOST_NODES = 12  # of either kind
_LONGEST_NS = 100_000  # that sending alone may take
_FORMS = (
    {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 1},
    {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2},
)
_MISFORTUNES = "kill", "interrupt", "abandon"
_CLOCKS = (0, 0.0), (0, 0.0), (7, 0.0), (100_000, 2e-5), (3, -2e-5), (0, 2e-3), (0, -2e-3)


class Case(Data):
    """A run on machines."""

    number: int
    content: dict[str, Any]  # of the scenario
    machines: int
    network: dict[str, float]  # delay_ms, loss, seed
    clocks: tuple[tuple[int, float], ...]
    misfortune: dict[str, float]
    dilation: int | None
    is_plain: bool  # so that each message takes what the simulator says

    @property
    def kind(self) -> str:
        """What is said of it in a count."""
        if self.misfortune:
            return next(iter(self.misfortune))
        has = {
            "loss": "loss" in self.network,
            "delay": "delay_ms" in self.network,
            "clocks": any(ahead or share for ahead, share in self.clocks),
            "any scenario": not self.is_plain,
        }
        return " and ".join(name for name, is_so in has.items() if is_so) or "plain"


def drawn(number: int) -> Case:
    """A case by lot."""
    chance = Random(number)
    is_plain = chance.random() < 0.6
    while True:
        content = _plain(chance) if is_plain else _any(chance)
        machines = chance.randint(2, 4)
        if _can_be_shared(content, machines):
            break
    network: dict[str, float] = {"seed": number}
    if chance.random() < 0.4:
        network["delay_ms"] = chance.choice((0.2, 1, 4))
    if chance.random() < 0.2:
        network["loss"] = 0.02
        # Before the time-out of who waits for what was lost.
        content["limit_ns"] = 500_000
    clocks = tuple(chance.choice(_CLOCKS) for _ in range(machines))
    misfortune: dict[str, float] = {}
    if chance.random() < 0.3:
        misfortune[chance.choice(_MISFORTUNES)] = round(chance.uniform(0, 2), 2)
    dilation = chance.choice((None, 12_000)) if is_plain else None
    return Case(number, content, machines, network, clocks, misfortune, dilation, is_plain)


def _can_be_shared(content: dict[str, Any], machines: int) -> bool:
    try:
        scenario = made(content)
        check_shareable(scenario, RunOptions(out=Path(), engine="mininet"))
        fabric = scenario.fabric()
        shares(fabric, [str(each) for each in range(machines)])
        is_small = len(fabric.hosts) <= _MOST_NODES and len(fabric.switches) <= _MOST_NODES
        return is_small and Experiment.of(scenario).least_ns < _LONGEST_NS
    except LabError:
        return False


def _any(chance: Random) -> dict[str, Any]:
    """What lots draw, for one machine: what is for one alone is left out."""
    content = lots.drawn(chance.randrange(10**6), None).content
    content.pop("loss", None)
    return {**content, "name": "any", "faults": [], "measures": {"flows": True, "series": False}}


def _plain(chance: Random) -> dict[str, Any]:
    form = chance.choice(_FORMS)
    policy = chance.choice(("ecmp", "ecmp", "spray", "flowlet"))
    recovery = "selective" if policy == "spray" else chance.choice(("go-back-n", "selective"))
    return {
        "name": "plain",
        "topology": form,
        "traffic": _traffic(chance, form["leaves"] * form["hosts_per_leaf"]),
        "link": {"delay_ns": chance.choice((1000, 1000, 2000, 5000)),
                 "mtu": chance.choice((1024, 4096))},
        "lb": {"policy": policy},
        "transport": {"recovery": recovery, "cc": chance.choice(("none", "none", "dcqcn"))},
        "seed": chance.randrange(1000),
    }  # fmt: skip


def _traffic(chance: Random, hosts: int) -> dict[str, Any]:
    size = chance.choice((1, 300, 4096, 20_000, 60_000, 150_000))
    match chance.choice(("incast", "permutation", "collective", "flows")):
        case "incast":
            return {"kind": "incast", "senders": chance.randint(1, hosts - 1), "bytes": size}
        case "permutation":
            return {"kind": "permutation", "bytes": size}
        case "collective":
            op = chance.choice(("all-reduce", "all-to-all", "all-gather"))
            return {"kind": "collective", "op": op, "bytes": max(size, hosts)}
    pairs = [chance.sample(range(1, hosts + 1), 2) for _ in range(chance.randint(1, 4))]
    flows = [{"src": f"h{one}", "dst": f"h{other}", "bytes": size} for one, other in pairs]
    return {"kind": "flows", "flows": flows}


# --- what is to come of it ------------------------------------------------------------------------


def complaints(case: Case, found: dict[str, Any], alone: Run) -> list[str]:
    """What is not as it should be."""
    wrong = [f"left behind: {found['left']}"] if found["left"] else []
    result = found["result"]
    if case.misfortune:
        return wrong + _of_misfortune(case, found)
    if found["code"] not in ((0, 1, 3) if case.network.get("loss") else (0, 3)) or result is None:
        return [*wrong, f"ended with {found['code']}: {found['said'][-600:]}"]
    flows, roce = result["flows"], result["roce"]
    if found["code"] != 1 and result["fidelity"]["ok"] != (found["code"] == 0):
        wrong.append(f"ended with {found['code']}, and {result['fidelity']}")
    believed, note = result["fidelity"]["ok"], result["fidelity"].get("note", "")
    said, loses = "were lost" in note, bool(case.network.get("loss"))
    expected = alone.result.flows.count
    if (flows["completed"] != flows["count"] and not said) or flows["count"] != expected:
        wrong.append(f"{flows['completed']} of {flows['count']} messages came: {note}")
    if believed and loses and roce["retransmitted_packets"] and not result["drops"]["total"]:
        wrong.append("something was sent again, and nobody says why")
    if not loses and said:
        wrong.append(f"nothing was lost, and it says so: {note}")
    if believed and not loses:
        wrong += _of_what_came(alone, result)
    if believed and not loses and case.is_plain:
        wrong += _of_times(found["kept"], alone, result)
    if most := _most_drift_ns(case, result):
        stated = result["machines"]["clock_error_ns"]
        if stated < most:
            wrong.append(f"clocks drifted by {most:.0f} ns, and {stated} is stated")
    limit = most_late_ns(alone.experiment)
    if result["machines"]["clock_error_ns"] > limit and (believed or "clocks" not in note):
        wrong.append(f"clocks are worse than {limit} ns, and it does not say so")
    return wrong


def _of_misfortune(case: Case, found: dict[str, Any]) -> list[str]:
    how, code, said = next(iter(case.misfortune)), found["code"], found["said"]
    if code in (0, 3) and found["result"]:  # it was over before
        return []
    is_told = {
        "kill": code == 1 and "machine m2: its part of the run ended (SIGKILL)" in said,
        "interrupt": code == 130,
        "abandon": code == -9,
    }[how]
    return [] if is_told else [f"after {how}: {code}: {said[-600:]}"]


def _of_what_came(alone: Run, result: dict[str, Any]) -> list[str]:
    wrong = []
    if result["drops"]["total"] and not alone.result.drops.total:
        wrong.append(f"{result['drops']['total']} drops, none simulated")
    sent_again = result["roce"]["retransmitted_packets"]
    if sent_again and not alone.result.roce.retransmitted_packets:
        wrong.append(f"{sent_again} packets were sent again, none simulated")
    if result["roce"]["data_bytes"] < alone.result.roce.data_bytes and not sent_again:
        wrong.append("bytes are missing")
    return wrong


def _of_times(flows: str, alone: Run, result: dict[str, Any]) -> list[str]:
    most = 2 * most_late_ns(alone.experiment) + result["machines"]["clock_error_ns"]
    one, other = _times(flows), _times((alone.out / "flows.csv").read_text())
    return [
        f"{name}: {one.get(name)} ns, {took} simulated"
        for name, took in other.items()
        if abs(one.get(name, 0) - took) > _FACTOR * took + most
    ]


def _times(flows: str) -> dict[str, int]:
    """Each message's completion time."""
    rows = csv.DictReader(io.StringIO(flows))
    return {
        f"{number} {row['src']}>{row['dst']}": int(row["fct_ns"] or 0)
        for number, row in enumerate(rows)
    }


def _most_drift_ns(case: Case, result: dict[str, Any]) -> float:
    """What clocks drifted by at least while the hosts sent, by the fabric's time."""
    lasted_ns: int = result["duration_ns"]
    passes = [share for _, share in case.clocks]
    return (max(passes) - min(passes)) * lasted_ns


def judged(case: Case) -> tuple[list[str], str]:
    """Run it; what is wrong, and in a word what came of it."""
    options = ["--dilation", str(case.dilation)] if case.dilation else []
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "case.yaml").write_text(yaml.safe_dump(case.content))
        found = on_machines(
            case.machines, str(folder / "case.yaml"), *options,
            clocks=case.clocks, keeps="flows.csv", mtu=9700, **case.network, **case.misfortune,
        )  # fmt: skip
        alone = simulate(str(folder / "case.yaml"), out=folder / "alone")
        wrong = complaints(case, found, alone)
    result = found["result"]
    if result is None:
        return wrong, f"ended ({found['code']})"
    fidelity = result["fidelity"]
    note = "believed" if fidelity["ok"] else f"not believed: {fidelity['note'][:160]}"
    return wrong, note


def main() -> int:
    """Run them, and say which are wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument("--only", type=int, nargs="*", help="these alone")
    asked = parser.parse_args()
    numbers = asked.only or range(asked.seed, asked.seed + asked.count)
    kinds: Counter[str] = Counter()
    failed = 0
    for number in numbers:
        case, began = drawn(number), time.monotonic()
        wrong, came = judged(case)
        kinds[case.kind] += 1
        failed += bool(wrong)
        print(f"{number}: {case.kind}, {case.machines} machines, {came} "
              f"({time.monotonic() - began:.0f} s)", *wrong, sep="\n  ", flush=True)  # fmt: skip
        if wrong:
            print(f"  {case}", flush=True)
    print(f"{kinds.total()} cases, {failed} wrong:", dict(kinds))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
