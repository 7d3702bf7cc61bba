"""The report of section 13, for machines: bmwg.json holds all of it, bmwg.csv a line a figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lab.bmwg.bench import Bench
from lab.bmwg.draft import DRAFT, NOT_RUN, Test
from lab.bmwg.outcome import Outcome, Row, Table
from lab.bmwg.running import Workshop
from lab.errors import LabError
from lab.runs.provenance import closlab_now
from params.data import Data
from topologies import NodeKind
from views.report.kept import read_json, unreadable

SCHEMA = "closlab.bmwg/1"
KEPT, TABLE, PAGE = "bmwg.json", "bmwg.csv", "index.html"
COLUMNS = (
    "section", "test", "table", "parameters", "figure", "unit", "mean", "trials", "stdev", "cv",
    "least", "most", "command",
)  # fmt: skip


class Made(Data):
    """What was measured, and by what."""

    bench: Bench
    command: str
    done: Mapping[Test, Outcome | LabError]
    workshop: Workshop

    @property
    def behind_figures(self) -> int:
        """How many runs stand behind figures; the others were steps of searches."""
        measured = (each for each in self.done.values() if isinstance(each, Outcome))
        return len({case for outcome in measured for case in outcome.cases})

    def commands(self, row: Row) -> list[str]:
        """What makes a row's runs again."""
        return list(dict.fromkeys(self.workshop.job(case).command for case in row.cases))

    def anomalies(self) -> Iterator[str]:
        """Section 13's sixth: deviations, failures, what was not to be expected."""
        for test, outcome in self.done.items():
            if isinstance(outcome, LabError):
                yield f"{test.section} failed: {outcome.message}"
                continue
            for said in outcome.anomalies:
                yield f"{test.section}: {said}"
            if self.bench.engine == "sim":
                continue  # whose clock waits for everybody
            doubted = self.workshop.doubted(outcome.cases)
            if doubted:
                yield (
                    f"{test.section}: {doubted} of {len(outcome.cases)} runs say of themselves "
                    "that the machine could not keep up: their times are not to be trusted"
                )


def content(made: Made) -> dict[str, Any]:
    """All of it."""
    bench = made.bench
    return {
        "schema": SCHEMA,
        "draft": DRAFT,
        "provenance": closlab_now(),
        "command": made.command,
        "is_quick": bench.extent.is_quick,
        "runs": {"all": made.workshop.asked, "behind_figures": made.behind_figures},
        "dut": identification(made),
        "topology": structure(bench),
        "configuration": dict(bench.device),
        "hosts": host_configuration(bench),
        "comparability": comparability(bench),
        "results": [_test(made, test, outcome) for test, outcome in made.done.items()],
        "not_run": NOT_RUN,
        "anomalies": list(made.anomalies()),
    }


def _test(made: Made, test: Test, outcome: Outcome | LabError) -> dict[str, Any]:
    record: dict[str, Any] = {"section": test.section, "test": test.key, "title": test.title}
    if isinstance(outcome, LabError):
        return {**record, "failed": outcome.message}
    return {
        **record,
        "primary": outcome.primary,
        "deviations": list(outcome.deviations),
        "left_out": list(outcome.left_out),
        "anomalies": list(outcome.anomalies),
        "tables": [
            {
                "title": table.title,
                "units": dict(table.units),
                "rows": [
                    {
                        "of": dict(row.of),
                        "figures": {name: _statistics(table, row, name) for name in table.units},
                        "commands": made.commands(row),
                    }
                    for row in table.rows
                ],
            }
            for table in outcome.tables
        ],
    }  # fmt: skip


def _statistics(table: Table, row: Row, figure: str) -> dict[str, Any] | None:
    values = row.figures.get(figure, ())
    if not values:
        return None
    record: dict[str, Any] = {"mean": fmean(values), "trials": len(values), "least": min(values),
                            "most": max(values)}  # fmt: skip
    if len(values) > 1:
        record |= {"stdev": stdev(values), "cv": table.variation(row, figure)}
    return record


def identification(made: Made) -> dict[str, str]:
    """Section 13's first: table 'DUT Identification Parameters', as far as it applies."""
    bench, now = made.bench, closlab_now()
    scenario = bench.scenario
    program = "fabric.p4 of closlab" if bench.p4 is None else str(bench.p4)
    switch = "BMv2" if bench.switch == "bmv2" else "closlab's software switch"
    return {
        "switch": switch,
        "ASIC": f"none: the P4 program {program}, compiled",
        "NOS": f"closlab {now['version']} {now['commit']}".strip(),
        "port speed": f"{scenario.link.rate_gbps:g} Gb/s, virtual",
        "buffer": f"shared, {scenario.buffer.bytes:,} bytes a switch, "
        f"alpha {scenario.buffer.alpha:g}",
        "optics and cables": f"{scenario.link.delay_ns:,} ns of delay each",
        "NIC": f"closlab's endpoint, {scenario.transport.kind.value}",
        "traffic generator": "the same endpoints: hardware of neither kind of section 3.4",
        "clock": "virtual" if bench.engine == "sim" else "the machine's, dilated",
    }


def structure(bench: Bench) -> dict[str, Any]:
    """Section 13's second, with the descriptors that compare classes of topologies."""
    scenario = bench.scenario
    fabric = scenario.fabric()
    tiers = len({switch.kind for switch in fabric.switches})
    leaves = [node for node in fabric.switches if node.kind is NodeKind.LEAF]
    ups = sum(1 for link in fabric.links if link.joins_switches)
    rate = scenario.link.fabric_rate_gbps or scenario.link.rate_gbps
    host_gbps = len(fabric.hosts) * float(scenario.link.rate_gbps)
    is_two_tier = tiers == 2
    return {
        "kind": scenario.topology.kind,
        "hosts": len(fabric.hosts),
        "switches": len(fabric.switches),
        "tiers": tiers,
        "worst hops": 2 * tiers - 1,
        "equal-cost paths": ups // len(leaves) if is_two_tier and leaves else None,
        "bisection bandwidth, Gb/s": ups * float(rate) / 2 if is_two_tier else None,
        "oversubscription": host_gbps / (ups * float(rate)) if is_two_tier and ups else None,
    }


def host_configuration(bench: Bench) -> dict[str, Any]:
    """Section 13's fourth."""
    transport = bench.scenario.transport
    return {
        "endpoint": "closlab's RoCEv2 and UET endpoint in C",
        "UEC profile": "none declared: RUD with NSCC or RCCC",
        "recovery": transport.recovery.value,
        "congestion control": transport.cc,
        "window": transport.window,
        "collective library": "none: schedules as its algorithms have them",
        "optional features": "LLR, packet trimming and CBFC where a test says so",
    }


def comparability(bench: Bench) -> dict[str, Any]:
    """The comparability set of section 3.2."""
    facts = structure(bench)
    return {
        "N": facts["hosts"],
        "accelerators per node, placement": "one, in the order of names",
        "B_acc": f"{bench.rate_gbps:g} Gb/s",
        "leaf oversubscription": facts["oversubscription"],
        "transport": bench.scenario.transport.kind.value,
        "load balancing": bench.scenario.lb.policy.value,
        "extent": "quick" if bench.extent.is_quick else "the draft's, as far as runs may send",
    }


def write(made: Made, out: Path) -> None:
    """Both files."""
    report = content(made)
    (out / KEPT).write_text(json.dumps(report, indent=2) + "\n")
    with (out / TABLE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(lines(report))


def lines(report: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """A line a figure, of what bmwg.json holds."""
    for test in report["results"]:
        for table in test.get("tables", ()):
            for row in table["rows"]:
                of = "; ".join(f"{name}={value}" for name, value in row["of"].items())
                for figure, found in row["figures"].items():
                    if found is None:
                        continue
                    yield (
                        test["section"], test["test"], table["title"], of, figure,
                        table["units"][figure], found["mean"], found["trials"], found.get("stdev"),
                        found.get("cv"), found["least"], found["most"],
                        row["commands"][0] if row["commands"] else "",
                    )  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    """A report that was kept."""
    path = folder / KEPT if folder.is_dir() else folder
    report = read_json(path, SCHEMA)
    if not isinstance(report.get("results"), list) or not isinstance(
        report.get("comparability"), dict
    ):
        raise unreadable(path, "results or comparability are missing")
    return report
