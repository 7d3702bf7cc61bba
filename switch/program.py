"""A P4 program ready to run: validated, compiled, and its objects listed by name and index."""

from __future__ import annotations

import gc
import json
import pickle  # of our own cache, as the libraries are that we load
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from files import FileError, read_bytes

from . import build
from .cache import kept
from .objects import Objects, Translation
from .place import JsonError

MAX_BYTES = 256 << 20  # of a program, and of what is said of it

KEPT = 4  # programs that a process remembers having translated


class Program(Objects, eq=False):
    """A program, its objects and its shared object."""

    name: str
    source: bytes = field(repr=False)  # the BMv2 JSON as given
    library: Path
    is_quick: bool  # built so that it is there soon, and runs more slowly

    @classmethod
    def load(
        cls,
        source: Path | str | bytes | dict[str, Any],
        *,
        name: str = "",
        trace: bool = False,
        soon: bool = False,
    ) -> Program:
        """Read BMv2 JSON (a path, bytes, or parsed), check it, build it or find it in the cache.

        Raises `JsonError` naming the place in the JSON, or `cache.Unbuildable`. With
        `trace` the program tells each packet's story to `Dataplane.set_trace`. If it is wanted
        `soon` and was not built before, it is built quickly: see `built_well`.
        """
        text = read(source)
        if not name:
            name = Path(source).stem if isinstance(source, str | Path) else "program"
        found = _translated(text, name)
        is_quick = soon and not trace and not build.is_built(found.c_text)
        library = build.program_library(found.c_text, trace=trace, quickly=is_quick)
        return _made(text, name, library, is_quick)

    def built_well(self) -> Program:
        """The same program as it runs fastest, for `Dataplane.exchange`; to build it takes time."""
        if not self.is_quick:
            return self
        c_text = _translated(self.source, self.name).c_text
        return replace(self, library=build.program_library(c_text), is_quick=False)


@lru_cache(maxsize=KEPT)
def _made(text: bytes, name: str, library: Path, is_quick: bool) -> Program:
    """The same for all that ask, who find out more of it once for all of them."""
    objects = vars(_translated(text, name).objects)
    return Program(**objects, name=name, source=text, library=library, is_quick=is_quick)


_RECURSION_LIMIT = 10_000
_LARGE = 1 << 18  # bytes of JSON from which on to read what was translated is quicker than to do it


@lru_cache(maxsize=KEPT)
def _translated(text: bytes, name: str) -> Translation:
    """A program read and written as C; a process asks for the same one again and again, and so do
    those after it.
    """
    if len(text) < _LARGE:
        return _translate(text, name)
    path = kept(
        f"program-{build.digest(text, name, _translator())}.pickle",
        lambda path: path.write_bytes(pickle.dumps(_translate(text, name))),
    )
    found: Translation = pickle.loads(path.read_bytes())  # noqa: S301
    return found


@cache
def _translator() -> str:
    """What tells this translator from any other."""
    folder = Path(__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("codegen/*.py")]
    return build.digest(
        sys.version, *(part for f in sorted(files) for part in (f.name, f.read_bytes()))
    )


def _translate(text: bytes, name: str) -> Translation:
    from .translation import translate  # only who comes first waits for it

    try:
        with _deep():
            return translate(text, name)
    except RecursionError:
        raise JsonError("an expression is nested too deeply") from None


@contextmanager
def _deep() -> Iterator[None]:
    """Expressions may be nested more deeply than Python usually goes, and what they become stays:
    to look through it for garbage, again and again, takes as long as to make it.
    """
    limit, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        sys.setrecursionlimit(limit)


def read(source: Path | str | bytes | dict[str, Any]) -> bytes:
    """The JSON's text."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, dict):
        return json.dumps(source).encode()
    try:
        return read_bytes(source, MAX_BYTES)
    except FileError as error:
        raise JsonError(str(error)) from None
