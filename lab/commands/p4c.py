"""``closlab p4c``: our compiler (`compiler/`)."""

from __future__ import annotations

from compiler import cli


def main(arguments: list[str]) -> int:
    """Compile P4_16, with p4c-bm2-ss's flags."""
    return cli.main(arguments)
