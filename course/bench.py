"""The bench a check works at: a submission's programs, functions and answers, ready to be tried.

What keeps something from being tried at all (it does not compile, the file is missing) is said by
the first check that asks for it; those after it are not judged.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from compiler import CompileError, CompileOptions, compile_program
from course.functions import Functions, Hosts
from course.lesson import SHARED
from course.submission import Files
from course.verdict import AsAbove, Wrong
from files import FileError
from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.paths import EXERCISES
from lab.results.result import Result
from lab.runs.run import measure
from lab.scenario import catalogue
from switch.build import BuildError
from switch.dataplane import DataplaneError, Program
from switch.place import JsonError
from switch.stf import StfError, StfRunner
from traffic.reading import read_yaml

_MAX_SAID = 3  # of what the compiler found
_MAX_OF_A_LINE = 160
T = TypeVar("T")
Kind = type | tuple[type, ...]  # of an answer


class Bench:
    """What was handed in, and what can be done with it."""

    def __init__(self, files: Files, hosts: Hosts) -> None:
        """Take files into a folder, in which what ships with the lessons is as it ships."""
        self._hosts = hosts
        self._holds = tempfile.TemporaryDirectory(prefix="closlab-lesson-")
        self.folder = Path(self._holds.name)
        self._known: dict[str, object] = {}
        for name, content in files.items():
            if isinstance(content, Wrong):
                self._known[name] = content
            else:
                (self.folder / name).write_bytes(content)
        for name in SHARED:
            shutil.copyfile(EXERCISES / name, self.folder / name)

    def close(self) -> None:
        """Put everything away."""
        for known in self._known.values():
            if isinstance(known, Functions):
                known.close()
        self._holds.cleanup()

    def _once(self, name: str, make: Callable[[Path], T]) -> T:
        """What is made of a file, or why nothing can be."""
        known = self._known.get(name)
        try:
            if known is None:
                known = self._known[name] = make(self._file(name))
            if isinstance(known, Wrong):
                raise known
        except Wrong as wrong:
            self._known[name] = AsAbove(wrong.what, wrong.where)
            raise
        return known  # type: ignore[return-value]

    def _file(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            raise Wrong(f"there is no {name}", "hand in all files that the lesson came with")
        return path

    def text(self, name: str) -> str:
        """A file as it is."""
        return self._file(name).read_text(errors="replace")

    # --- programs in P4

    def program(self, name: str) -> Program:
        """A program, compiled and ready to run."""
        return self._once(name, _built)

    def switch(self, name: str, config: str = "") -> Switch:
        """A switch that runs a program, with tables filled by lines as packet tests have them."""
        program = self.program(name)
        try:
            switch = Switch(program, name, self.text(name))
        except DataplaneError as error:
            raise _too_large(name, error) from None
        switch.configure(config)
        return switch

    # --- functions in Python

    def functions(self, name: str) -> Functions:
        """What a file defines, to be called."""
        return self._once(name, lambda path: Functions(path, self._hosts()))

    # --- answers, and runs of the simulator

    def answers(self, name: str, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """A file of answers: all that are asked for, each of its kind."""

        def read(path: Path) -> dict[str, Any]:
            try:
                content = read_yaml(path)
            except FileError as error:
                problem = str(error).replace(f"{path.parent}/", "")
                raise Wrong(problem, "write KEY: VALUE, one a line") from None
            found = content if isinstance(content, dict) else {}
            for key, kind in kinds.items():
                if found.get(key) is None:
                    raise Wrong(f"{name} has no answer for '{key}'", f"fill in {key}")
                if not isinstance(found[key], kind) or found[key] != found[key]:  # nor .nan
                    raise Wrong(f"{name}: {key} cannot be {found[key]!r}", f"see what {key} takes")
            for key in found:
                if key not in kinds:
                    raise Wrong(
                        f"{name}: '{key}' is not asked for", f"asked for are {', '.join(kinds)}"
                    )
            return found

        return self._once(name, read)

    def run(self, scenario: str | Mapping[str, object], *changes: str, said: str = "") -> Result:
        """Simulate a scenario; ``said`` is the answers' file if changes come from there."""
        try:
            if isinstance(scenario, str):
                chosen = catalogue.load(scenario, changes)
            else:
                chosen = catalogue.made(dict(scenario), changes)
            options = RunOptions(out=self.folder, engine="sim")
            return measure(chosen, options, Console(file=io.StringIO()))
        except LabError as error:
            if not said:
                raise
            raise Wrong(
                error.message, f"{said}: {error.cure or 'closlab explain KEY tells more'}"
            ) from None


class Switch:
    """A switch in memory that runs a submission's program; the caller is its clock."""

    STEP_NS = 1_000_000

    def __init__(self, program: Program, name: str, source: str) -> None:
        self.name = name
        self._source = source
        self._runner = StfRunner(program, Path(name))
        self.dataplane = self._runner.dataplane

    def configure(self, lines: str) -> None:
        """Fill tables, as packet tests do; a table that is never applied is not in the program."""
        for line in lines.splitlines():
            try:
                self._runner.command(line)
            except StfError as error:
                if any(self._is_idle(word) for word in line.split()[1:2]):
                    continue
                problem = str(error).partition(": ")[2]
                raise Wrong(
                    f"the tables cannot be filled: {problem}",
                    f"{self.name}: names and parameters have to stay as they were in the skeleton",
                ) from None

    def _is_idle(self, table: str) -> bool:
        """Whether it is declared, and nothing applies it."""
        declared = re.search(rf"\btable\s+{table}\b", self._source)
        return bool(declared) and not re.search(rf"\b{table}\s*\.\s*apply\b", self._source)

    @property
    def now_ns(self) -> int:
        """Its clock."""
        return self._runner.now_ns

    def send(self, port: int, frame: bytes, at_ns: int | None = None) -> list[tuple[int, bytes]]:
        """Let a frame come in; what has left by then, as (port, frame)."""
        self._runner.now_ns = self.now_ns + self.STEP_NS if at_ns is None else at_ns
        self.dataplane.inject(port, frame, self.now_ns)
        return self.left()

    def timed(self) -> list[tuple[int, bytes, int]]:
        """What left since it was asked last, with the time when its last bit is there."""
        return [(port, frame, when) for port, frame, when in self.dataplane.outputs() if frame]

    def left(self) -> list[tuple[int, bytes]]:
        """The same without the times."""
        return [(port, frame) for port, frame, _ in self.timed()]

    def wait(self, until_ns: int) -> None:
        """Let time pass."""
        while (following := self.dataplane.service(self.now_ns)) and following <= until_ns:
            self._runner.now_ns = max(following, self.now_ns)
        self._runner.now_ns = max(until_ns, self.now_ns)

    def register(self, name: str, index: int = 0) -> int:
        """A register's cell; of one that nothing in the program asks for, which is not there, 0."""
        try:
            return self.dataplane.read_register(self._runner.register(name), index)[0]
        except StfError:
            if re.search(rf"\bregister\s*<.*>\s*\(.*\)\s*{name}\s*;", self._source):
                return 0
            raise Wrong(
                f"there is no register {name}",
                f"{self.name}: names have to stay as they were in the skeleton",
            ) from None


def _built(path: Path) -> Program:
    try:
        compiled = compile_program(path, CompileOptions(only_beside=True))
        return Program.load(compiled.json_text.encode(), name=path.stem)
    except CompileError as error:
        found = [found for found in error.diagnostics if found.severity == "error"]
        lines = (line for each in found[:_MAX_SAID] for line in each.render().splitlines())
        output = "\n".join(line[:_MAX_OF_A_LINE] for line in lines)
        raise Wrong(
            f"{path.name} does not compile:\n{output}".replace(f"{path.parent}/", ""),
            f"closlab p4c {path.name} -o out.json says the same",
        ) from None
    except (JsonError, BuildError, DataplaneError) as error:
        raise _too_large(path.name, error) from None


def _too_large(name: str, error: Exception) -> Wrong:
    return Wrong(
        f"{name} compiles, and no switch can run it: {str(error).splitlines()[0]}",
        "is there a table, register or number in it that is larger than the skeleton's?",
    )
