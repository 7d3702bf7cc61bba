"""Programs of a test's own in the place of real ones."""

from pathlib import Path


def stand_in(path: Path, *lines: str) -> None:
    """A program that does as these lines of a shell say."""
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
