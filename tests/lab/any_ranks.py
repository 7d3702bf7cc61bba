"""Any scenario by several ranks: the same bytes as by one process and one thread.

    python -m tests.lab.any_ranks                          all that the simulator runs
    python -m tests.lab.any_ranks --only incast deadlock   these
    python -m tests.lab.any_ranks --lot 40 --seed 1        by lot
    python -m tests.lab.any_ranks --mpirun mpirun.mpich --ranks 2 4 --threads 1 2

First all are run by one process, with 1 thread and with more, and then by each number of ranks,
which are started once for all scenarios. Compared is what is kept and what the engine hands back.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.engines.sim import simulation
from lab.engines.sim.ranks import RankIsDone, join, launched
from lab.errors import LabError
from lab.machine.paths import ROOT
from lab.scenario import shipped
from switch.build import digest
from tests.lab.any_settings import written
from tests.lab.simulated import simulate

_NAME = "tests.lab.any_ranks"
_TABLES = "flows", "work", "timeseries", "buffers", "pauses", "ways"
Digests = dict[str, str]  # by what is compared, a digest


def as_root() -> dict[str, str]:
    """What Open MPI wants to be told by root."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launcher(mpirun: str, ranks: int) -> list[str]:
    """The words that start so many, be they more than processors."""
    said = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=True).stdout
    is_open_mpi = "Open MPI" in said or "OpenRTE" in said
    return [mpirun, *["--oversubscribe"] * is_open_mpi, "-n", str(ranks)]


def scenarios(only: list[str], lot: int, seed: int, folder: Path) -> list[str]:
    """Those that ship, these of them, or so many by lot."""
    names = [name for name in shipped.names() if "sim" in shipped.engines(name)]
    chosen = only or ([] if lot else names)
    return [*chosen, *(str(written(seed + at, folder)) for at in range(lot))]


def _answer(name: str, out: Path, threads: int, ranks: object) -> Digests:
    """All that is kept of a run, its origin aside."""
    try:
        run = simulate(name, out=out, threads=threads, ranks=ranks)
    except RankIsDone:
        return {}
    except LabError as error:
        return {"refused": error.message}
    content = run.result.content()
    del content["provenance"]
    found = {key: digest(json.dumps(value)) for key, value in content.items()}
    found["outcome"] = digest(repr(run.outcome))
    for table in _TABLES:
        path = out / f"{table}.csv"
        found[table] = digest(path.read_bytes()) if path.exists() else ""
    return found


def run_all(names: list[str], threads: int, to: Path) -> None:
    """Run them all, by this process or as one of several; the first writes what they came to."""
    how = launched()
    ranks = join(how) if how is not None else None
    answers: dict[str, Digests] = {}
    simulation.WORTH_EVENTS = 0  # every turn is shared, however little there is to do
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            answers[name] = _answer(name, Path(folder), threads, ranks)
        if ranks is None or ranks.is_first:
            said = answers[name].get("refused", f"{time.monotonic() - began:.1f} s")
            print(f"  {Path(name).stem}: {said} {ranks.traffic if ranks else ''}", flush=True)
            to.write_text(json.dumps(answers))
    if ranks is not None:
        ranks.leave()


def check(
    names: list[str], threads: list[int], ranks: list[int], mpirun: str, folder: Path
) -> list[str]:
    """In which ways they differ from what one thread comes to."""
    ways: list[tuple[str, list[str], int]] = [(f"{n} threads", [], n) for n in threads]
    ways += [(f"{n} ranks", launcher(mpirun, n), 1) for n in ranks]
    wrong: list[str] = []
    alone: dict[str, Digests] = {}
    for title, words, each in ways:
        print(f"{title}:", flush=True)
        to = folder / f"{title}.json"
        one = json.dumps([names, each, str(to)])
        argv = [*words, sys.executable, "-m", _NAME, "--one", one]
        subprocess.run(argv, check=True, cwd=ROOT, env=os.environ | as_root())
        found: dict[str, Digests] = json.loads(to.read_text())
        alone = alone or found
        wrong += [f"{name}, {title}: {key}" for name, key in _differences(alone, found)]
    return wrong


def _differences(alone: dict[str, Digests], found: dict[str, Digests]) -> list[tuple[str, str]]:
    return [
        (name, key)
        for name in alone
        for key in {**alone[name], **found[name]}
        if alone[name].get(key) != found[name].get(key)
    ]


def main() -> int:
    """Run them and say which differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[], help="scenarios")
    parser.add_argument("--lot", type=int, default=0, help="so many by lot instead")
    parser.add_argument("--seed", type=int, default=1, help="of the first by lot")
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--mpirun", default="mpirun", help="or mpirun.mpich, ...")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        names, each, to = json.loads(asked.one)
        run_all(names, each, Path(to))
        return 0
    if shutil.which(asked.mpirun) is None:
        parser.error(f"there is no {asked.mpirun}")
    with tempfile.TemporaryDirectory() as folder:
        names = scenarios(asked.only, asked.lot, asked.seed, Path(folder))
        wrong = check(names, [1, *asked.threads], asked.ranks, asked.mpirun, Path(folder))
    print(f"{len(names)} scenarios, {len(wrong)} differences", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
