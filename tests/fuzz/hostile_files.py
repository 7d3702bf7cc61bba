"""Files that nobody means well, given to whatever reads files, with little memory.

    python -m tests.fuzz.hostile_files [--count N] [--seed N]

A kind of reader after the other gets a file of that kind changed by lot, or no file at all: a pipe,
a device without end, a folder, a link in a circle, gigabytes of nothing. The command is carried out
as the command line does it, in a process of its own with bounds, as `ulimit -v` and `ulimit -t` set
them. What it may do is end, by itself, in time, and without a traceback; anything else is told with
the seed by which it can be had again, and its files are kept.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

from compiler.cli import main as compile_main
from course.lesson import find
from lab import cli
from params.data import Data
from tests.fuzz.bytes import changed
from tests.fuzz.kept import CORPUS, other_json
from tests.lab.test_imports_run import MAKERS

ROOT = Path(__file__).parents[2]
PROCESSOR_S, WALL_S = 30, 300  # of one; the wall's clock is for who waits
_MORE_BYTES = tuple(1 << shift for shift in (25, 27, 28, 30))  # memory beyond what Python has
_ODD_SHARE, _BYTES_SHARE, _OTHERS_SHARE = 0.2, 0.25, 0.6
_SAID = "said.txt"
_READY = (
    *("run", "import", "report", "compare", "runs", "figure", "export", "frames", "grade", "stf"),
    "p4c",
)


class Case(Data, frozen=False):
    """A file that is to be spoilt, and who reads it then."""

    file: Path
    words: list[str]


WORD = re.compile(rb"-?\w[\w.]*")
OTHERS = (
    *(b"0", b"-1", b"1", b"2", b"3", b"7", b"0.5", b"1000", b"4095", b"65536", b"2147483648"),
    *(b"1e300", b"9" * 30, b"true", b"null", b"h1", b"h9999", b"leaf1", b"10GB", b"5s", b"x" * 300),
)


def spoilt(rng: random.Random, data: bytes) -> bytes:
    """Some words in the place of others, which goes further than bytes that make no sense do."""
    known = list(WORD.finditer(data))
    if not known or rng.random() < _BYTES_SHARE:
        return changed(rng, data)
    for at in sorted(rng.sample(known, min(len(known), rng.randrange(1, 4))), key=_from_behind):
        word = rng.choice(OTHERS) if rng.random() < _OTHERS_SHARE else rng.choice(known)[0]
        data = data[: at.start()] + word + data[at.end() :]
    return data


def _from_behind(found: re.Match[bytes]) -> int:
    return -found.start()


Make = Callable[[random.Random, Path], Case]


def _copied(rng: random.Random, folder: Path, known: list[Path]) -> Path:
    path = rng.choice(known)
    shutil.copyfile(path, folder / path.name)
    return folder / path.name


def _run(*words: str) -> list[str]:
    short = ("limit_ns=20us", "measures.series=false")
    settings = [word for setting in short for word in ("--set", setting)]
    return ["run", *words, *settings, "--engine", "sim", "--out", "out"]


def a_scenario(rng: random.Random, folder: Path) -> Case:
    """Of those that ship."""
    file = _copied(rng, folder, sorted((ROOT / "scenarios").glob("*.yaml")))
    return Case(file, _run(str(file)))


def brought(kind: str) -> Make:
    """A workload's or a fabric's file, and what lies beside it."""

    def make(rng: random.Random, folder: Path) -> Case:
        path, extras = MAKERS[kind](rng, folder)
        several = sorted(path.iterdir()) if path.is_dir() else [path]
        words = [word for key, value in extras.items() for word in (f"--{key}", str(value))]
        if kind in _FABRICS and rng.random() < 0.3:
            chosen = f"topology={{kind: file, path: {path}}}"
            return Case(path, _run("incast", "--set", chosen))
        if kind == "chakra" and rng.random() < 0.2:
            words += ["--groups", str(several[0])]
        return Case(rng.choice(several), ["import", str(path), "-o", "lab", *words])

    return make


def a_tutorials_topology(_: random.Random, folder: Path) -> Case:
    """As the P4 tutorials have it."""
    file = folder / "topology.json"
    hosts = {f"h{n}": {"ip": f"10.0.0.{n}/24", "mac": f"08:00:00:00:00:0{n}"} for n in (1, 2)}
    links = [["h1", "s1-p1"], ["h2", "s2-p1", "1ms", 10], ["s1-p2", "s2-p2"]]
    switches = {"s1": {"runtime_json": "s1.json"}, "s2": {}}
    file.write_text(json.dumps({"hosts": hosts, "switches": switches, "links": links}))
    return Case(file, ["import", str(file), "-o", "lab"])


def a_program(rng: random.Random, folder: Path) -> Case:
    """In P4."""
    known = [*(ROOT / "tests" / "p4").rglob("*.p4"), *(ROOT / "exercises").rglob("solution/*.p4")]
    (folder / "p4").mkdir()
    shutil.copytree(ROOT / "tests" / "p4" / "include", folder / "include")
    file = _copied(rng, folder / "p4", sorted(known))
    return Case(file, ["p4c", str(file), "-I", str(ROOT / "exercises"), "-o", "p.json"])


@cache
def _compiled() -> str:
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "p.json"
        assert compile_main([str(find("1").folder / "solution" / "forward.p4"), "-I",
                             str(ROOT / "exercises"), "-o", str(made)]) == 0  # fmt: skip
        return made.read_text()


_TEST = (
    "add ingress.routes hdr.ipv4.dst_addr:0x0a000201 to_port(port:2, next_mac:0x080000000222)\n"
    "packet 1 ffffffffffff 080000000111 0800 45000014 00000000 40110000 0a000101 0a000201\n"
    "wait\nmc_mgrp_create 1\nmc_node_create 1 2 3\n"
)


def a_loaded_program(rng: random.Random, folder: Path) -> Case:
    """As BMv2 takes it."""
    file, test = folder / "p.json", folder / "t.stf"
    content = json.loads(_compiled())
    if rng.random() < 0.7:
        other_json(rng, content)
    file.write_text(json.dumps(content))
    test.write_text(_TEST)
    return Case(file, ["stf", str(file), str(test)])


def a_packet_test(rng: random.Random, folder: Path) -> Case:
    """Of a program that is all right."""
    (folder / "p.json").write_text(_compiled())
    if rng.random() < 0.5:
        file = _copied(rng, folder, sorted((ROOT / "tests").rglob("*.stf")))
    else:
        file = folder / "t.stf"
        file.write_text(_TEST)
    return Case(file, ["stf", str(folder / "p.json"), str(file)])


def a_kept_run(rng: random.Random, folder: Path) -> Case:
    """All of its files, one of them spoilt."""
    run = folder / "run"
    shutil.copytree(CORPUS / "result", run)
    file = rng.choice(sorted(path for path in run.rglob("*") if path.is_file()))
    if file.suffix == ".json" and rng.random() < 0.7:
        content = json.loads(file.read_text())
        other_json(rng, content)
        file.write_text(json.dumps(content))
    other = str(CORPUS / "result")
    readers = (
        *(["report", str(run)], ["compare", str(run), other, "--out", "both"]),
        *(["runs", str(folder)], ["figure", str(run), "topology"]),
        *(["export", str(run), "--as", kind] for kind in ("flows", "nccl-tests")),
    )
    return Case(file, rng.choice(readers))


def a_capture(rng: random.Random, folder: Path) -> Case:
    """Of a few frames."""
    file = _copied(rng, folder, sorted(p for p in (CORPUS / "captures").rglob("*") if p.is_file()))
    return Case(file, ["frames", "--pcap", str(file)])


def a_submission(rng: random.Random, folder: Path) -> Case:
    """A lesson's solution."""
    lesson = find(rng.choice(("1", "4", "7", "12")))
    shutil.copytree(lesson.folder / "solution", folder / "handed-in")
    file = rng.choice(sorted((folder / "handed-in").iterdir()))
    return Case(file, ["grade", str(lesson.number), str(folder / "handed-in")])


_FABRICS = ("graph", "graphml", "tree", "infrastructure", "first form")
READERS: dict[str, Make] = {
    "scenario": a_scenario,
    **{kind: brought(kind) for kind in MAKERS},
    "tutorial": a_tutorials_topology,
    "P4": a_program,
    "BMv2 JSON": a_loaded_program,
    "packet test": a_packet_test,
    "kept run": a_kept_run,
    "capture": a_capture,
    "submission": a_submission,
}


# --- what is no file, or none of that kind


def a_pipe(file: Path) -> None:
    """Which nobody writes to."""
    os.mkfifo(file)


def a_socket(file: Path) -> None:
    """Which nobody answers."""
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(file.parent):
        made.bind(file.name)


def gigabytes(file: Path) -> None:
    """Of zeros, which take no room on the disk."""
    with file.open("wb") as made:
        made.truncate(40 << 30)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": a_pipe,
    "a socket": a_socket,
    "zeros without end": lambda file: file.symlink_to("/dev/zero"),
    "noise without end": lambda file: file.symlink_to("/dev/urandom"),
    "a full device": lambda file: file.symlink_to("/dev/full"),
    "a terminal": lambda file: file.symlink_to("/dev/tty"),
    "its own memory": lambda file: file.symlink_to("/proc/self/mem"),
    "a folder": Path.mkdir,
    "a circle": lambda file: file.symlink_to(file.name),
    "nothing": lambda _: None,
    "an empty file": Path.touch,
    "gigabytes": gigabytes,
    "brackets": lambda file: file.write_text("[" * 100_000),
    "braces": lambda file: file.write_text('{"a":' * 100_000),
    "zeros": lambda file: file.write_bytes(bytes(100_000)),
    "half characters": lambda file: file.write_bytes(b"\xff\xfe\xed\xa0\x80" * 1000),
    "one line": lambda file: file.write_text("a" * 900_000),
    "many lines": lambda file: file.write_text("a: 1\n" * 100_000),
    "aliases": lambda file: file.write_text(
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    ),
    "entities": lambda file: file.write_text(
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
    ),
}


class Ending(Data):
    """How a command ended, and what is wrong with that."""

    what: str
    is_read: bool  # and not refused
    wrong: str = ""


def ending_of(seed: int, number: int, folder: Path) -> Ending:
    """Spoil a file by lot and let it be read."""
    rng = random.Random(f"{seed}/{number}")
    kind = list(READERS)[number % len(READERS)]
    case = READERS[kind](rng, folder)
    if rng.random() < _ODD_SHARE:
        odd = rng.choice(list(ODD))
        case.file.unlink()
        ODD[odd](case.file)
    else:
        odd = "changed"
        case.file.write_bytes(spoilt(rng, case.file.read_bytes()))
    words = " ".join(case.words).replace(f"{folder}/", "")
    status = _carried_out(case.words, folder, rng.choice(_MORE_BYTES))
    said = (folder / _SAID).read_text(errors="replace")
    wrong = ""
    if status is None:
        wrong = f"it waited for {WALL_S} s, and said: {said[-500:]}"
    elif os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        wrong = f"{name} ended it; it said: {said[-500:]}"
    elif "Traceback" in said:
        wrong = said[said.index("Traceback") :][-3000:]
    return Ending(f"{kind}, {odd}: closlab {words}", status == 0, wrong)


def _carried_out(words: list[str], folder: Path, more_bytes: int) -> int | None:
    """How a command ended; None, if it did not."""
    child = os.fork()
    if child == 0:
        try:
            _confine(folder, more_bytes)
            sys.argv = ["closlab", *words]
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + WALL_S
    ended = status = 0
    while not ended and time.monotonic() < until:
        time.sleep(0.005)
        ended, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    return status if ended else None


def _confine(folder: Path, more_bytes: int) -> None:
    """As a shell would with `ulimit`, and its outputs in a file."""
    os.setsid()
    os.chdir(folder)
    output = os.open(folder / _SAID, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for what, most in (
        (resource.RLIMIT_AS, has + more_bytes),
        (resource.RLIMIT_CPU, PROCESSOR_S),
        (resource.RLIMIT_FSIZE, 1 << 30),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def sweep(count: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """So many files: how many were read and refused, and what went wrong."""
    for command in _READY:  # once for all, and in nobody's bounds
        import_module(f"lab.commands.{command}")
    _compiled()
    endings: Counter[str] = Counter()
    found = []
    for number in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="closlab-hostile-"))
        ending = ending_of(seed, number, folder)
        endings["read" if ending.is_read else "refused"] += 1
        if ending.wrong:
            found.append(f"seed {seed}, file {number} in {folder}: {ending.what}\n{ending.wrong}")
        else:
            shutil.rmtree(folder)
    return endings, found


def main() -> int:
    """The sweep, from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="The number of the first.")
    asked = parser.parse_args()
    endings: Counter[str] = Counter()
    wrong = 0
    for first in range(asked.first, asked.first + asked.count, 50):
        more, found = sweep(min(50, asked.first + asked.count - first), asked.seed, first)
        endings, wrong = endings + more, wrong + len(found)
        print(*found, sep="\n", end="\n" * bool(found))
        tally = ", ".join(f"{count} {how}" for how, count in sorted(endings.items()))
        print(f"{endings.total()} files: {tally}, {wrong} wrongly", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
