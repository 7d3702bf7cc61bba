"""What is handed in: a folder's files, read once, by nobody but the one who asks for the grade.

A file counts if it is one: links, pipes, devices and second names of a file elsewhere are told of,
and never opened further. So nothing but what lies in the folder is judged, or quoted in what is
said of it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from course.verdict import Wrong
from lab.errors import LabError

_KINDS = (".p4", ".py", ".yaml")
_MAX_BYTES = 1 << 18  # of a file
_MAX_FILES = 64
_QUIETLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Files = Mapping[str, bytes | Wrong]  # by name: what is in it, or why that does not count


def files_in(folder: Path) -> Files:
    """What of a folder a lesson may ask for; what lies in folders of its own is not."""
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(here) as entries:
                names = sorted(each.name for each in entries if each.name.endswith(_KINDS))
            return {name: _read(here, name, at) for at, name in enumerate(names)}
        finally:
            os.close(here)
    except OSError as error:
        raise LabError(f"{folder} cannot be read: {error.strerror}") from None


def _read(folder: int, name: str, how_manieth: int) -> bytes | Wrong:
    if how_manieth >= _MAX_FILES:
        return Wrong(f"more than {_MAX_FILES} files are handed in", "hand in what the lesson asks")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):  # to open a device may do something already
            return _no_file(name)
        file = os.open(name, _QUIETLY, dir_fd=folder)
        with os.fdopen(file, "rb") as stream:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                return _no_file(name)
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        return Wrong(f"{name} cannot be read: {error.strerror}", "hand in a file of your own")
    if len(content) > _MAX_BYTES:
        return Wrong(
            f"{name} has more than {_MAX_BYTES >> 10} KiB", "no lesson takes a file of that size"
        )
    return content


def _no_file(name: str) -> Wrong:
    return Wrong(
        f"{name} is a link, or no file at all",
        "hand in the file itself, in the folder; what lies elsewhere is not read",
    )


def packed(files: Files) -> bytes:
    """A line that tells them to another process."""
    record = {
        name: [known.what, known.where] if isinstance(known, Wrong) else known.decode("latin-1")
        for name, known in files.items()
    }
    return json.dumps(record).encode() + b"\n"


def unpacked(line: bytes) -> Files:
    """What such a line tells."""
    record: dict[str, str | list[str]] = json.loads(line)
    return {
        name: known.encode("latin-1") if isinstance(known, str) else Wrong(*known)
        for name, known in record.items()
    }
