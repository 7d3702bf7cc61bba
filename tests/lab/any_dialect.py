"""Fabrics of SONiC, EOS and NVUE together: sound ones are sound, and a fault in any is found.

    .venv/bin/python -m tests.lab.any_dialect [--seed N] [--count N] [--runs]

draws so many fabrics by lot, tells a leaf of each in EOS' words and one in NVUE's and FRR's, and
adapters in their tools'; checks each as it is and with one fault in a text. It mends what commands
mend and checks again, shows by runs what runs show, if asked, and ends with 1 if anything is amiss.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from lab.configs.basis import Options
from lab.configs.cures import commands_of, write_cures
from lab.configs.fabric import read_fabric
from lab.configs.findings import Finding
from lab.configs.proofs import prove
from lab.configs.rules import check
from tests.lab.config_folders import sound
from tests.lab.dialects import adapter, mixed

Change = Callable[[Random, str], str]


class Fault(NamedTuple):
    """Which files, what becomes of their text, what is to be found, and what follows from it."""

    files: str
    change: Change
    rule: str
    also: frozenset[str] = frozenset()
    has_run: bool = True
    is_typed: bool = True  # commands mend it


def _swap(old: str, new: str) -> Change:
    return lambda _, text: re.sub(old, new, text, flags=re.MULTILINE)


def _one(old: str, new: str) -> Change:
    """One of many places, by lot."""

    def change(rng: Random, text: str) -> str:
        at = rng.choice(list(re.finditer(old, text, re.MULTILINE)))
        return f"{text[: at.start()]}{at.expand(new)}{text[at.end() :]}"

    return change


def _tool(kind: str, **settings: object) -> Change:
    return lambda _rng, _text: adapter(**settings)[kind]


_PFC = frozenset({"adapter-pfc"})
FAULTS = {
    "eos pfc": Fault("tor0.eos", _swap(r"^ +priority-flow-control priority 3 no-drop\n", ""),
                     "pfc-one-end", _PFC),
    "eos dscp": Fault("tor0.eos", lambda _rng, text: text.replace(
        "\nqos map dscp 3 26 to traffic-class 3", "\nqos map dscp 3 to traffic-class 3"
        "\nqos map dscp 26 to traffic-class 1"), "dscp-map", frozenset({"adapter-dscp"})),
    "eos no marks": Fault("tor0.eos", _one(r"^ +random-detect .*\n", ""), "ecn-missing",
                          is_typed=False),
    "eos drops": Fault("tor0.eos", _one(
        r"random-detect ecn (.*) max-mark-probability", r"random-detect drop \1 drop-probability"),
        "wred-drop", is_typed=False),
    "eos unwatched": Fault("tor0.eos", _swap(r"^ +priority-flow-control pause watchdog.*\n", ""),
                           "watchdog-missing", is_typed=False),
    "eos strict": Fault("tor0.eos", _swap(r"(tx-queue 3\n +)no priority", r"\1priority strict"),
                        "scheduler-strict", is_typed=False),
    "eos mtu": Fault("tor0.eos", _swap("mtu 9100", "mtu 4000"), "mtu-differs", has_run=False),
    "eos untrusted": Fault("tor0.eos", _swap("qos trust dscp", "qos trust cos"), "dscp-untrusted",
                           is_typed=False),
    "nvue pfc": Fault("tor1.yaml", _swap(r"^            '3': {}\n", ""), "pfc-one-end", _PFC),
    "nvue dscp": Fault("tor1.yaml", _swap(r"('26':\n +switch-priority: )3", r"\g<1>1"),
                       "dscp-map", frozenset({"adapter-dscp"})),
    "nvue no marks": Fault("tor1.yaml", _one("ecn: enable", "ecn: disable"), "ecn-missing",
                           is_typed=False),
    "nvue drops": Fault("tor1.yaml", _one("ecn: enable", "ecn: disable\n              red: enable"),
                        "wred-drop", is_typed=False),
    "nvue unwatched": Fault("tor1.yaml", _one(r"(pfc-watchdog:\n +state: )enable", r"\1disable"),
                            "watchdog-missing"),
    "nvue untrusted": Fault("tor1.yaml", _swap("trust: l3", "trust: l2"), "dscp-untrusted",
                            is_typed=False),
    "nvue queue": Fault("tor1.yaml", lambda _rng, text: text + (
        "      egress-queue-mapping:\n        default-global:\n          switch-priority:\n"
        "            '1':\n              traffic-class: 3\n"), "queue-shared"),
    "frr silent": Fault("tor1.frr", _one(r"^ neighbor swp\d+ interface .*\n", ""), "bgp-missing",
                        has_run=False, is_typed=False),
    "adapter pfc": Fault("*.mlnx_qos", _tool("mlnx_qos", pfc=(3,)), "adapter-pfc",
                         is_typed=False),
    "adapter trust": Fault("*.mlnx_qos", _tool("mlnx_qos", trust="pcp"), "adapter-trust",
                           is_typed=False),
    "adapter tos": Fault("*.cma_roce_tos", _tool("cma_roce_tos", tos=184), "adapter-dscp",
                         is_typed=False),
    "adapter deaf": Fault("*.ecn", _tool("ecn", rp=0), "adapter-ecn", is_typed=False),
    "adapter silent": Fault("*.ecn", _tool("ecn", np=0), "adapter-ecn", is_typed=False),
    "adapter cnp": Fault("*.ecn", _tool("ecn", cnp_dscp=4), "adapter-cnp", has_run=False,
                         is_typed=False),
}  # fmt: skip


def complaint(seed: int, fault: str | None, folder: Path, with_runs: bool = False) -> str:
    """What should not be; nothing: all is well."""
    mixed(sound(seed), folder / "in")
    if fault is None:
        return "; ".join(map(_text, check(read_fabric(folder / "in"), Options())))
    kind, rng = FAULTS[fault], Random(seed)
    file = rng.choice(sorted((folder / "in").glob(kind.files)))
    before = file.read_text()
    after = kind.change(rng, before)
    assert after != before, fault
    file.write_text(after)
    fabric = read_fabric(folder / "in")
    found = check(fabric, Options())
    named = file.name.partition(".")[0]
    mine = [one for one in found if one.rule == kind.rule and one.switch == named]
    others = [one for one in found if one.rule not in {kind.rule, *kind.also}]
    if not mine or others:
        return f"{kind.rule} at {named} was to be found, and there is {[*map(_text, found)]}"
    if fabric.file_of(mine[0]) not in (file, file.with_suffix(".yaml")):
        return f"{_text(mine[0])} is told of {fabric.file_of(mine[0])}"
    if not fabric.line_of(mine[0]):
        return f"{_text(mine[0])} has no line"
    if with_runs and kind.has_run:
        ((_, proof),) = prove(mine[:1])
        if not proof.is_shown:
            return f"{_text(mine[0])} is not shown: {proof.note}; {proof.before}; {proof.after}"
    if kind.is_typed:
        if not commands_of(fabric, mine).get(named):
            return f"{_text(mine[0])} has no commands"
        write_cures(fabric, found, folder / "out")
        left = [one for one in check(read_fabric(folder / "out"), Options())
                if one.rule == kind.rule]  # fmt: skip
        return "; ".join(f"cured, there is {_text(one)}" for one in left)
    return ""


def _text(one: Finding) -> str:
    return f"{one.rule} at {one.place}: {one.what}"


def main() -> int:
    """So many fabrics, each as it is and with one fault, in turn of all kinds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--runs", action="store_true")
    asked = parser.parse_args()
    came: Counter[str] = Counter()
    kinds = list(FAULTS)
    for seed in range(asked.seed, asked.seed + asked.count):
        for fault in (None, kinds[seed % len(kinds)]):
            with tempfile.TemporaryDirectory() as folder:
                said = complaint(seed, fault, Path(folder), asked.runs)
            came["amiss" if said else "well"] += 1
            if said:
                print(f"seed {seed}, {fault or 'sound'}: {said}", flush=True)
    print(f"{came.total()} fabrics, half of them with a fault: {came['amiss']} amiss")
    return int(came["amiss"] > 0)


if __name__ == "__main__":
    sys.exit(main())
