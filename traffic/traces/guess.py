"""Which kind of trace a file is: by its name, and by how it begins."""

from __future__ import annotations

import re
from pathlib import Path

from files import FileError, is_folder, opened
from traffic.traces.graph import TraceError
from traffic.traces.text import MAX_BYTES

_START = 4096
KNOWN = (
    "known: flows as start_ns,src,dst,bytes; htsim's .cm; ns-3's flow.txt; GOAL; Chakra's "
    "NAME.RANK.et; MSCCL's .xml; AICB's .txt"
)
_SIGNS = (
    ("msccl", re.compile(r"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<algo\b", re.DOTALL)),
    ("aicb", re.compile(r"\s*(HYBRID_TRANSFORMER|MICRO\s*\n)")),
    ("goal", re.compile(r"(\s|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*num_ranks\b", re.DOTALL)),
    (
        "htsim",
        re.compile(
            r"(?!.*^\s*(Tiers|Podsize)\b)(\s|#[^\n]*\n)*(Nodes\s+\d|\d+->\d)",
            re.DOTALL | re.MULTILINE,
        ),
    ),
    ("ns3", re.compile(r"\s*\d+\s*\n\s*\d+ +\d+ +\d+( +\d+)? +\d+ +\d+(\.\d*)?\s*(\n|$)")),
    ("table", re.compile(r"[^\n]*\b(start_ns|src|dst|bytes)\b[^\n]*,")),
)


class UnknownKindError(TraceError):
    """A file that is no trace of any kind."""


def kind_of(path: Path) -> str:
    """The ``traffic.kind`` that reads a file, or a folder of Chakra's."""
    if is_folder(path) or re.search(r"\.\d+\.et(\.gz)?$", path.name):
        return "chakra"
    try:
        with opened(path, MAX_BYTES) as file:
            start = file.read(_START)
    except FileError as error:
        raise TraceError(str(error)) from None
    text = start.decode(errors="replace")
    for kind, sign in _SIGNS:
        if sign.match(text):
            return kind
    raise UnknownKindError(f"{path}: it is not known what this is", KNOWN)
