"""Whether a release is what it says: python provision/version.py vX.Y.Z.

Its tag, the version in pyproject.toml and the newest heading of the changelog, which then tells a
day, have to agree. It needs nothing but Python.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def version(root: Path = ROOT) -> str:
    """What pyproject.toml says."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def newest(root: Path = ROOT) -> tuple[str, str]:
    """The version that the changelog begins with, and when it was released, or that it was not."""
    heading = _HEADING.search((root / "CHANGELOG.md").read_text())
    return (heading[1], heading[2]) if heading else ("", "")


def complaints(tag: str, root: Path = ROOT) -> list[str]:
    """What does not agree with a tag, a line each."""
    said, (noted, when) = version(root), newest(root)
    found = [
        f"pyproject.toml says {said}" * (tag != f"v{said}"),
        f"CHANGELOG.md begins with {noted}" * (tag != f"v{noted}"),
        f"CHANGELOG.md says '{when}' instead of a day" * (not _DAY.fullmatch(when)),
    ]
    return [f"the tag is {tag}, but {each}" for each in found if each]


if __name__ == "__main__":
    sys.exit("\n".join(complaints(sys.argv[1])) or 0)
