"""How long the editor's door takes for p4src/fabric.p4, edited character by character.

    python -m tests.doors.editor_speed --rounds 5

A statement is typed into the program's ingress, a character at a time, and after each an editor's
questions are asked, another one first each time: how a word goes on, what a name is, where it is
declared and used, the outline. After each round a name is renamed; then a key is struck in the
program's own file, and in one that nearly all of it follows from, and the questions come at once
that wait for the program to be read again. At last a blank before all else and a letter within a
declaration's name are typed into each of the program's files. Told are the wall clock and the
processor's time that the server took of it: on a busy machine the first says more of the machine.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from lab.machine.paths import ROOT
from tests.doors.editor_client import Client

_TYPED = "if (hdr.ipv4.isValid()) { meta.priority = hdr.ipv4.dscp[2:0]; }"
_DECLARED = re.compile(
    r"^(?:control|parser|header|struct|typedef|const|action|enum)[^\n;{(]* \w+", re.MULTILINE
)
_BEFORE = "pause_timers.apply(hdr, meta, standard_metadata);"


def _cpu_s(pid: int) -> float:
    """The processor's time of a process, all its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def measured(rounds: int) -> dict[str, list[tuple[float, float]]]:
    """By question, the wall clock and processor's seconds of each answer."""
    folder = ROOT / "p4src"
    text = (folder / "fabric.p4").read_text()
    line = next(at for at, each in enumerate(text.split("\n")) if _BEFORE in each)
    field_line = next(at for at, each in enumerate(text.split("\n")) if "meta.copy_session" in each)
    column = text.split("\n")[field_line].index("copy_session") + 1
    found: dict[str, list[tuple[float, float]]] = {}
    with Client(folder) as client:
        client.begin()

        def timed(name: str, ask: Callable[[], Any]) -> None:
            began, spent = time.monotonic(), _cpu_s(client.server.pid)
            ask()
            own = (time.monotonic() - began, _cpu_s(client.server.pid) - spent)
            found.setdefault(name, []).append(own)

        def ask(what: str, **more: Any) -> Callable[[], Any]:
            return lambda: client.at(what, "fabric.p4", field_line, column, **more)

        client.open("headers.p4")
        client.open("fabric.p4")
        ask("hover")()
        for turn in range(rounds):
            client.change("fabric.p4", text)
            for at, letter in enumerate(_TYPED):
                client.change("fabric.p4", letter, (line, at))
                completion = partial(client.at, "completion", "fabric.p4", line, at + 1)
                questions = [
                    ("completion", completion),
                    ("hover", ask("hover")),
                    ("definition", ask("definition")),
                    ("outline", ask("documentSymbol")),
                    ("references", ask("references", context={"includeDeclaration": True})),
                ]
                first = (at + turn) % len(questions)
                for name, question in questions[first:] + questions[:first]:
                    timed(name, question)
            client.change("fabric.p4", text)
            ask("references", context={"includeDeclaration": True})()
            timed("rename", ask("rename", newName=f"session_{turn}"))
            for file in ("fabric.p4", "headers.p4"):
                for name, question in (
                    ("references", ask("references", context={"includeDeclaration": True})),
                    ("rename", ask("rename", newName=f"other_{turn}")),
                ):
                    client.change(file, " ", (line if file == "fabric.p4" else 0, 0))
                    timed(f"{name}, key in {file}", question)
        client.change("fabric.p4", text)
        references = ask("references", context={"includeDeclaration": True})
        for path in sorted(folder.glob("*.p4")):
            whole = path.read_text()
            begin = _DECLARED.search(whole)
            client.open(path.name)
            for what, at in (("blank", (0, 0)), ("letter", _line_of(whole, begin))):
                for _ in range(rounds):
                    client.change(path.name, " " if what == "blank" else "x", at)
                    timed(f"references, {what} in {path.name}", references)
                client.change(path.name, whole)
                references()
    return found


def _line_of(text: str, found: re.Match[str] | None) -> tuple[int, int]:
    """Where a match ends, as an editor counts; the beginning, if there is none."""
    before = text[: found.end() if found else 0].split("\n")
    return len(before) - 1, len(before[-1])


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    print(f"{'ms':40} {'asked':>6} {'wall':>8} {'worst':>8} {'processor':>10} {'worst':>8}")
    for name, all_ in measured(parser.parse_args().rounds).items():
        wall, spent = ([1000 * each[at] for each in all_] for at in (0, 1))
        print(f"{name:40} {len(all_):6} {median(wall):8.1f} {max(wall):8.1f} "
              f"{median(spent):10.1f} {max(spent):8.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
