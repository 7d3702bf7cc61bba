"""What runs kept, and captures, changed by lot: read, reported and compared, or refused in words.

    python -m tests.fuzz.kept SECONDS [SEED]

Takes files of the corpus, changes them, and lets `report`, `compare` and `frames` have them. Every
answer is a report or a `LabError`; anything else ends it, with the seed and the place of the files.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.commands.frames import show_pcap
from lab.errors import LabError
from tests.fuzz.bytes import changed
from views.report import find_runs, write_report
from views.report.compare import Comparison, write_comparison

CORPUS = Path(__file__).parent / "corpus"
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 0.5, 1e308, -1e308, float("nan"), float("inf"), 10**30, -(2**63)),
    *("", "x", "h1", "h9>leaf9", "<b>", "\u202e", "leaf1>spine1", [], [1], {}, {"": 1}, [[]]),
)
NUMBERS = (0, 1, -1, 2, 3, 7, 1000, 2**31, 2**63, 10**18, 10**30)
Place = list[Any]
MAX_S = 20  # of processor time for one


def places(content: Any, place: Place | None = None) -> list[Place]:
    """Where a value stands in a tree of JSON."""
    place = place or []
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    found = []
    for key, value in inner:
        here = [*place, key]
        found.append(here)
        if isinstance(value, dict | list):
            found += places(value, here)
    return found


def like(rng: random.Random, value: Any) -> Any:
    """Another value, mostly one of the same kind: what is not refused goes further."""
    if rng.random() < 0.2:
        return rng.choice(VALUES)
    match value:
        case bool():
            return not value
        case int():
            return rng.choice((*NUMBERS, value + 1, -value, 2 * value))
        case float():
            return rng.choice((*map(float, NUMBERS[:8]), -value, value / 3, 1e-300, 1e300))
        case str():
            words = [each for each in VALUES if isinstance(each, str)]
            return rng.choice((*words, value[::-1], value.upper(), "spine1>leaf2", "h4"))
        case list():
            return rng.choice((value[:1], value * 2, value[::-1], []))
        case dict():
            return dict(rng.sample(sorted(value.items()), len(value) // 2))
    return rng.choice(VALUES)


def other_json(rng: random.Random, content: Any) -> None:
    """Another value, or none, at some places."""
    for _ in range(rng.randrange(1, 4)):
        known = places(content)
        if not known:
            return
        *sections, last = rng.choice(known)
        where = content
        for section in sections:
            where = where[section]
        if rng.random() < 0.2:
            del where[last]
        elif rng.random() < 0.2:
            *others, key = rng.choice(known)
            there = content
            for section in others:
                there = there[section]
            where[last] = there[key]
        else:
            where[last] = like(rng, where[last])


def other_csv(rng: random.Random, text: str) -> str:
    """Another value, a line more or less, or a column."""
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(rng.randrange(1, 4)):
        row = rng.choice(rows)
        if row and rng.random() < 0.8:
            at = rng.randrange(len(row))
            is_number = row[at].lstrip("-").isdigit()
            row[at] = str(like(rng, int(row[at]) if is_number else row[at]))
        elif rng.random() < 0.5:
            rows.insert(rng.randrange(len(rows)), list(rng.choice(rows)))
        elif row:
            del row[rng.randrange(len(row))]
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def spoil(rng: random.Random, folder: Path) -> None:
    """Change one or two of a run's files."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".csv"))
    for file in rng.sample(files, rng.randrange(1, 3)):
        if rng.random() < 0.1:
            file.write_bytes(changed(rng, file.read_bytes()))
        elif file.suffix == ".csv":
            file.write_text(other_csv(rng, file.read_text()), errors="surrogatepass")
        else:
            content = json.loads(file.read_text())
            other_json(rng, content)
            file.write_text(json.dumps(content))


def one_run(seed: int, folder: Path) -> str:
    """Report one, and compare it with what it was; how that ended."""
    rng = random.Random(seed)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(CORPUS / "result", folder)
    spoil(rng, folder)
    try:
        for found in find_runs(folder):
            write_report(found)
        both = [*find_runs(folder), *find_runs(CORPUS / "result")]
        beside = folder / "compared"
        beside.mkdir()
        write_comparison(Comparison.of(both), beside)
    except LabError as error:
        assert error.message, "it is refused without a word"
        return "refused"
    return "reported"


def one_capture(seed: int, folder: Path) -> str:
    """Show one."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    source = rng.choice(sorted((CORPUS / "captures").iterdir()))
    file = folder / source.name
    file.write_bytes(changed(rng, source.read_bytes()))
    try:
        show_pcap(Console(file=io.StringIO()), file, 30)
    except LabError as error:
        assert error.message
        return "refused"
    return "shown"


def fuzz(seconds: float, seed: int, most: int = 10**9) -> Counter[str]:
    """As many as there is time for; how they ended."""
    ends: Counter[str] = Counter()
    until = time.process_time() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.process_time() < until and ends.total() < most:
            one = one_capture if seed % 3 == 0 else one_run
            place = Path(folder, "run")
            began = time.process_time()
            try:
                with redirect_stdout(io.StringIO()):
                    ends[one(seed, place)] += 1
            except Exception:
                kept = Path(tempfile.mkdtemp(prefix=f"fuzz-{seed}-"))
                shutil.copytree(place, kept, dirs_exist_ok=True)
                print(f"seed {seed}: {kept}", file=sys.stderr)
                raise
            took_s = time.process_time() - began
            assert took_s < MAX_S, f"seed {seed} took {took_s:.0f} s"
            seed += 1
    return ends


if __name__ == "__main__":
    print(dict(fuzz(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
