"""Files that somebody names, read with bounds: the ground that all who read files stand on.

A name may lead to a pipe that nobody writes to, to a device without an end, to a folder, round in a
circle of links, or to more than memory holds. So no reader opens what it is given by itself. What
comes of it is the content of a regular file, or a `FileError` that says in one line what is there
instead.

What is open already can be named as well, as `/dev/stdin` or by a shell's `<(...)`: a pipe there is
read like a file, to its end and to the same bound. A pipe with a name in a folder is not, since who
opens it may wait for ever.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

__all__ = [
    "FileError",
    "NoFileError",
    "is_file",
    "is_folder",
    "opened",
    "parse_json",
    "parse_plain_json",
    "read_bytes",
    "read_json",
    "read_text",
    "shown",
]

_PIECE = 1 << 20
_LONGEST = 160
_NOT_THERE = errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG
_OPEN_ALREADY = ("/dev/fd", "/proc/self/fd")
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "but a folder: name a file in it"),
    (stat.S_ISFIFO, "but a pipe: keep what it gives in a file, and name that"),
    (stat.S_ISSOCK, "but a socket"),
    (stat.S_ISCHR, "but a device"),
    (stat.S_ISBLK, "but a device"),
)


_MAX_DIGITS = 19  # and a sign: what 64 bits hold
# Half of a pair: no other half before or behind it.
_HALF = re.compile(
    r"(?i)\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}"
)


class FileError(Exception):
    """A file that cannot be read; the text says why, and begins with what it is said of."""


class NoFileError(FileError):
    """One that is not there."""


def read_bytes(path: Path | str, most: int) -> bytes:
    """All that a file holds, at most so many bytes."""
    with opened(path, most) as file:
        found = bytearray()
        while piece := file.read(_PIECE):
            found += piece
            if len(found) > most:
                raise _too_long(path, most)
    return bytes(found)


def read_text(path: Path | str, most: int) -> str:
    """The text of a file, which is in UTF-8 whatever this machine thinks of letters."""
    data = read_bytes(path, most)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"{shown(path)} is no text: {error}") from None


def read_json(path: Path | str, most: int) -> Any:
    """What a file says in JSON."""
    try:
        return parse_json(read_text(path, most))
    except ValueError as error:
        raise FileError(f"{shown(path)} is not JSON: {error}") from None


def parse_json(text: str | bytes, **hooks: Callable[[Any], Any]) -> Any:
    """What a text says in JSON; a `ValueError` tells what is wrong with it."""
    try:
        return json.loads(text, **hooks)  # type: ignore[arg-type]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_plain_json(text: str) -> Any:
    """The same of a file that closlab wrote: of such numbers and letters as it writes."""
    if "\\ud" in text.lower() and _HALF.search(text):
        raise ValueError("it has half a character")
    return parse_json(text, parse_constant=_no_number, parse_int=_number)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _number(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(f"{digits[:_MAX_DIGITS]}... is too large a number")
    return int(digits)


def opened(path: Path | str, most: int) -> BinaryIO:
    """A file to be read, which is one and is not longer than that as it is opened."""
    try:
        # Who opens a pipe waits for its other end, unless he says that he does not.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        kind = NoFileError if error.errno in _NOT_THERE else FileError
        raise kind(f"{shown(path)} cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name with a zero in it, or with half a character
        raise FileError(f"{str(path)[:_LONGEST]!a} cannot be read: {error}") from None
    try:
        about = os.fstat(number)
        if stat.S_ISFIFO(about.st_mode) and _was_open(path):
            os.set_blocking(number, True)
        elif not stat.S_ISREG(about.st_mode):
            what = next((name for is_it, name in _KINDS if is_it(about.st_mode)), "")
            raise FileError(f"{shown(path)} is no file {what}".rstrip())
        if about.st_size > most:
            raise _too_long(path, most)
        return io.BufferedReader(_OpenFile(number, path))
    except FileError:
        os.close(number)
        raise


class _OpenFile(io.FileIO):
    """A file that is open; what a failing disk does not give is told like the rest."""

    def __init__(self, number: int, path: Path | str) -> None:
        super().__init__(number, "rb")
        self._path = path

    def readinto(self, buffer: Any, /) -> int | None:
        """As much as there is."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise FileError(f"{shown(self._path)} cannot be read: {error.strerror}") from None


def is_folder(path: Path | str) -> bool:
    """Whether there is a folder of that name; one that no folder can have is none."""
    return os.path.isdir(path)  # noqa: PTH112  (Path's own raises for names that are too long)


def is_file(path: Path | str) -> bool:
    """The same of a file."""
    return os.path.isfile(path)  # noqa: PTH113


def shown(path: Path | str) -> str:
    """A file's name as it is told to people: of a very long one, how it begins and ends."""
    name = os.fspath(path).encode(errors="backslashreplace").decode()
    return name if len(name) <= _LONGEST else f"{name[:80]}...{name[-40:]}"


def _was_open(path: Path | str) -> bool:
    folder, name = os.path.split(os.fspath(path))
    return (folder in _OPEN_ALREADY and name.isdecimal()) or (folder, name) == ("/dev", "stdin")


def _too_long(path: Path | str, most: int) -> FileError:
    return FileError(f"{shown(path)} is too long: it may have {most:,} bytes")
