"""Configurations damaged by lot: each ends in a message or in findings, and none in a traceback.

    .venv/bin/python -m tests.lab.any_damage [--seed N] [--count N]

damages so many folders of configurations (of SONiC alone, and of SONiC, EOS, NVUE, FRR and adapters
together) and SKUs' folders, reads, checks, proves and brings each, and ends with 1 if anything else
came of one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from lab.configs.basis import Options
from lab.configs.brought import import_fabric
from lab.configs.cures import write_cures
from lab.configs.device import read_device
from lab.configs.fabric import read_fabric
from lab.configs.output import lines
from lab.configs.page import page
from lab.configs.proofs import prove
from lab.configs.rules import check
from lab.configs.sarif import sarif
from lab.errors import LabError
from tests.lab.config_folders import FAULTS, faulty, sound
from tests.lab.dialects import mixed
from tests.lab.sku_folders import write_sku

NASTY: tuple[Any, ...] = (
    None, True, 0, -1, 1, "", "0", "-1", "99999999999", 10**30, 1.5, float("inf"), [], {},
    "x" * 300, "\x1b[2J", "\ud800", "3,4", "0-7", "NULL", "[A|B]", "Ethernet0", "../..",
    "$(reboot)", "<script>", {"profile": "NULL"},
)  # fmt: skip
_OTHERS = (
    b"hostname leaf1\n!\ninterface Ethernet1\n   priority-flow-control on\n",  # EOS
    b"- set:\n    interface:\n      swp1: {link: {mtu: 9216}}\n",  # NVUE
    b"router bgp 65001\n neighbor 10.0.0.1 remote-as 65002\n",  # FRR
    b"<DeviceMiniGraph/>", b"\xff\xfe\x00{", b"[" * 100_000, b"\x00" * 4096,
)  # fmt: skip


def mutate(rng: Random, content: Any) -> None:
    """A value somewhere is another, an entry is gone, or one has another's name."""
    at = content
    while isinstance(at, dict) and at:
        key = rng.choice(sorted(at))
        deeper = at[key]
        if not isinstance(deeper, dict) or not deeper or rng.random() < 0.15:
            break
        at = deeper
    match rng.randrange(3):
        case 0:
            at[key] = rng.choice(NASTY)
        case 1:
            del at[key]
        case _:
            at[str(rng.choice(NASTY))[:40]] = at.pop(key)


def _torn(rng: Random, path: Path) -> None:
    """A file that ends early, has other bytes in it, or is somebody else's."""
    data = bytearray(path.read_bytes())
    match rng.randrange(3):
        case 0:
            path.write_bytes(data[: rng.randrange(len(data))])
        case 1:
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data)
        case _:
            path.write_bytes(rng.choice(_OTHERS))


def _worded(rng: Random, path: Path) -> None:
    """A text of which words, lines or their indentation are not what they were."""
    lines = path.read_text().splitlines()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        words = lines[at].split(" ")
        match rng.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(rng.randrange(len(lines)), lines[at])
            case 2:
                words[rng.randrange(len(words))] = str(rng.choice(NASTY))
                lines[at] = " ".join(words)
            case 3:
                lines[at] = re.sub(r"\d+", lambda _: str(rng.choice((0, 7, 64, 10**9))), lines[at])
            case _:
                lines[at] = " " * rng.randrange(9) + lines[at].lstrip()
        lines = lines or [""]
    path.write_bytes("\n".join(lines).encode(errors="surrogatepass"))


def _a_folder(rng: Random, seed: int, folder: Path) -> None:
    """A folder of SONiC alone, or of several systems, damaged."""
    if seed % 5 in (1, 2):
        mixed(sound(seed), folder)
        texts = [path for path in sorted(folder.iterdir()) if path.suffix != ".json"]
        damage = _worded if rng.random() < 0.8 else _torn
        damage(rng, rng.choice([path for path in texts if not path.name.startswith("gpu")]
                               if rng.random() < 0.7 else texts))  # fmt: skip
        return
    faults = list(FAULTS)
    drawn = faulty(seed, rng.choice(faults))[0] if rng.random() < 0.5 else sound(seed)
    for _ in range(rng.randint(1, 3)):
        mutate(rng, drawn.switches[drawn.a_switch()])
    drawn.write(folder)
    if seed % 5 == 3:
        _torn(rng, rng.choice(sorted(folder.iterdir())))


def outcome(seed: int, folder: Path) -> str:
    """What came of one that is damaged by this seed: refused, found, or nothing found."""
    rng = Random(seed)
    try:
        if seed % 5 == 4:
            sku = write_sku(folder / "sku")
            _torn(rng, rng.choice(sorted(p for p in sku.parent.rglob("*") if p.is_file())))
            device = read_device(sku, None, "", Options())
            if device.fabric is None:
                return "refused"
            fabric = device.fabric
        else:
            _a_folder(rng, seed, folder / "in")
            fabric = read_fabric(folder / "in")
        found = check(fabric, Options())
        pairs = [(one, None) for one in found]
        json.dumps(sarif(fabric, folder, list(pairs)))
        page("damaged", fabric, list(pairs), []).encode()
        prove(found[:1] if seed % 10 == 0 else [])
        list(lines(fabric, list(pairs), None))
        if seed % 5 != 4:
            write_cures(fabric, found, folder / "cured")
        if fabric.hosts:
            import_fabric(fabric, folder / "out")
    except LabError as error:
        assert error.message.isprintable(), error.message
        assert len(error.message) < 1000, error.message
        return "refused"
    return "found" if found else "nothing found"


def main() -> int:
    """So many, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    asked = parser.parse_args()
    came: Counter[str] = Counter()
    for seed in range(asked.seed, asked.seed + asked.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                came[outcome(seed, Path(folder))] += 1
            except Exception:
                came["failed"] += 1
                print(f"seed {seed}: {traceback.format_exc(limit=-3)}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(came.items())))
    return int(came["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
