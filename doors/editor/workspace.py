"""The files as an editor has them, the programs they belong to, and who reads these when.

A file belongs to the programs that include it, however deep: those of the editor's folders, and of
the folder that it lies in. Of a file that nothing includes, the program is the file itself. What is
asked about a file that several include is answered by one of them, one that is open if any is;
a name's places are looked for in all.

Programs are read by one thread, and answers wait for the reading of what the editor has now. A
reading that a change overtakes is broken off.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from compiler.preprocess import INCLUDE_DIR, content_of
from doors.editor.program import Program, Settings, real
from doors.editor.reading import Reading, SupersededError, read_program
from files import FileError
from params.data import Data

MAX_FILES = 2000  # that are looked through for what they include
_SOON_S = 0.1  # that a question waits for a program to be read anew
_MAX_PROGRAMS = 8  # that are kept
_MAX_UNCOLLECTED = 400  # readings, between two looks for garbage
_STACK_BYTES = 64 << 20
_LEFT_ALONE = {"node_modules", "__pycache__"}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


class Open(Data):
    """A file that the editor has open."""

    uri: str
    text: str


class _Included(Data, frozen=False):
    """What a file includes, of a file as it was then."""

    stamp: object
    files: frozenset[str]


class Desk(Data, frozen=False):
    """All of it."""

    settings: Settings = field(default_factory=Settings)
    folders: set[str] = field(default_factory=set)
    open: dict[str, Open] = field(default_factory=dict)
    version: int = 0
    _changed: dict[str, int] = field(default_factory=dict)
    _outside: int = 0
    _uncollected: int = 0
    _variants: dict[tuple[Program, str], Program] = field(default_factory=dict)
    _known: dict[str, _Included] = field(default_factory=dict)
    _listed: list[str] | None = None
    _programs: dict[Path, tuple[int, Program]] = field(default_factory=dict)
    _sound: dict[Path, Program] = field(default_factory=dict)
    _begun: dict[Path, Reading] = field(default_factory=dict)  # the reading thread's
    _readings: dict[tuple[Path, int], asyncio.Future[Program]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        before = threading.stack_size(_STACK_BYTES)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._thread.submit(int).result()  # which begins the thread, with that stack
        threading.stack_size(before)

    def close(self) -> None:
        """Read nothing any more."""
        self.version += 1
        self._thread.shutdown(cancel_futures=True)

    # Files

    def changed(self, path: str, now: Open | None) -> None:
        """A file reads like this now; None: as it is on the disk."""
        if now is None:
            self.open.pop(path, None)
        else:
            if path not in self.open:
                self.changed_outside()
            self.open[path] = now
        self.version += 1
        self._changed[path] = self.version

    def changed_outside(self) -> None:
        """Files came, went, or changed without the editor."""
        self._listed = None
        self.version += 1
        self._outside = self.version

    def read(self, path: Path) -> str:
        """A file as the editor has it, or as it is on the disk."""
        found = self.open.get(real(str(path)))
        return content_of(path) if found is None else found.text

    # Which programs include it

    def programs_of(self, path: str) -> list[Path]:
        """Those that include a file; the one to ask about it comes first."""
        over: dict[str, set[str]] = {}
        for file in self._files(path):
            for included in self._includes(file):
                over.setdefault(included, set()).add(file)
        found, work = {path}, [path]
        while work:
            for each in over.get(work.pop(), ()):
                if each not in found:
                    found.add(each)
                    work.append(each)
        roots = [each for each in found if not over.get(each, set()) - {each}] or [path]
        folder = Path(path).parent
        roots.sort(key=lambda r: (r not in self.open, Path(r).parent != folder, r))
        return [Path(root) for root in roots]

    def _files(self, path: str) -> list[str]:
        if self._listed is None:
            folders = self.folders | {str(Path(each).parent) for each in self.open}
            inside = {
                each
                for each in folders
                if any(o != each and Path(each).is_relative_to(o) for o in folders)
            }
            listed = (file for each in sorted(folders - inside) for file in _p4(each))
            self._listed = [*dict.fromkeys(listed)][:MAX_FILES]
        return [*self._listed, *(each for each in self.open if each not in self._listed), path]

    def _includes(self, path: str) -> frozenset[str]:
        """The files that a file names, whatever conditions they stand under."""
        now = self.open.get(path)
        stamp: object = now
        if now is None:
            try:
                stat = Path(path).stat()
            except OSError:
                return frozenset()
            stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._known.get(path)
        if known is None or known.stamp != stamp:
            try:
                text = self.read(Path(path))
            except (FileError, OSError):
                text = ""
            known = self._known[path] = _Included(stamp, frozenset(self._named(path, text)))
        return known.files

    def named_in(self, path: str, text: str) -> list[str]:
        """The files that lines of a file include."""
        return [*self._named(path, text)]

    def _named(self, path: str, text: str) -> Iterator[str]:
        for beside, elsewhere in _INCLUDE.findall(text):
            places = [*self.settings.include_dirs, INCLUDE_DIR]
            if beside:
                places.insert(0, Path(path).parent)
            for place in places:
                target = real(str(place / (beside or elsewhere)))
                if target in self.open or Path(target).is_file():
                    yield target
                    break

    # Reading

    def latest(self, root: Path) -> Program | None:
        """A program as it was read last, changed or not since."""
        found = self._programs.get(root)
        return found[1] if found else None

    def sound(self, root: Path) -> Program | None:
        """A program as it was read when nothing was wrong with it."""
        return self._sound.get(root)

    async def program(self, root: Path) -> Program:
        """A program as it is now."""
        while True:
            version = self.version
            found = self._programs.get(root)
            if found is not None and self._is_current(*found):
                return found[1]
            key = (root, version)
            if key not in self._readings:
                loop = asyncio.get_running_loop()
                reading = loop.run_in_executor(self._thread, partial(self._read, root, version))
                reading.add_done_callback(partial(self._is_read, key))
                self._readings[key] = reading
            try:
                return await asyncio.shield(self._readings[key])
            except SupersededError:
                continue

    def _is_current(self, version: int, program: Program) -> bool:
        """Whether nothing that a program was read from changed since."""
        last = max((self._changed.get(file, 0) for file in program.files), default=self.version)
        return version >= max(last, self._outside)

    def _is_read(self, key: tuple[Path, int], reading: asyncio.Future[Program]) -> None:
        self._readings.pop(key, None)
        if not reading.cancelled():
            reading.exception()  # who waits for it has it, if anybody does

    def _read(self, root: Path, version: int) -> Program:
        """In the thread."""

        def go_on() -> None:
            if self.version != version:
                raise SupersededError

        go_on()
        self._uncollected += 1
        if self._uncollected > _MAX_UNCOLLECTED:
            self.collect()
        program = self._reading(root).read(self.read, go_on)
        program.index()
        self._keep(root, version, program)
        return program

    def _reading(self, root: Path) -> Reading:
        found = self._begun.get(root)
        if found is None or found.settings != self.settings:
            found = self._begun[root] = Reading(root, self.settings)
        return found

    def _keep(self, root: Path, version: int, program: Program) -> None:
        self._programs.pop(root, None)
        self._programs[root] = (version, program)
        if program.is_sound:
            self._sound[root] = program
        while len(self._programs) > _MAX_PROGRAMS:
            oldest = next(iter(self._programs))
            self._programs.pop(oldest, None)
            self._sound.pop(oldest, None)
            self._begun.pop(oldest, None)

    def collect(self) -> None:
        """Let go of what was read and is not asked about any more: it takes a question's time."""
        self._uncollected = 0
        gc.collect()

    async def recent(self, root: Path) -> Program:
        """A program as it is now if that is known soon, else as it was read last."""
        before = self.latest(root)
        if before is None:
            return await self.program(root)
        try:
            return await asyncio.wait_for(self.program(root), _SOON_S)
        except TimeoutError:
            return before

    async def finished(self, program: Program) -> Program:
        """The same after the passes behind types."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, program.finish)
        return program

    async def work(self, task: Callable[..., Any], *given: Any) -> Any:
        """What comes of a task that takes long, done where programs are read."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(task, *given))

    def variant(self, program: Program, name: str) -> Program:
        """A program as it is with a macro more, read once."""
        key = (program, name)
        if key not in self._variants:
            self._variants = {k: v for k, v in self._variants.items() if k[0] is program}
            self._variants[key] = read_program(
                program.root, program.settings.defining(name), self.read
            )
        return self._variants[key]

    async def programs(self, roots: Iterable[Path]) -> list[Program]:
        """Several, one after the other."""
        return [await self.program(root) for root in roots]


def _p4(folder: str) -> Iterator[str]:
    """The P4 files below a folder, hidden folders and links aside."""
    looked = 0
    for here, inside, files in os.walk(folder):
        inside[:] = sorted(
            each for each in inside if not each.startswith(".") and each not in _LEFT_ALONE
        )
        looked += len(files)
        if looked > 20 * MAX_FILES:
            return
        for name in sorted(files):
            if name.endswith((".p4", ".p4inc", ".p4i")):
                yield real(f"{here}/{name}")
