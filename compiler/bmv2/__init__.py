"""The back end: the low-level program as BMv2's JSON.

The sections come in the order BMv2's loader reads about them in its format document; ids count
from 0 within each kind, except field lists and learn lists, whose 0 means "none".
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from compiler import core as c
from compiler import ir, types
from compiler.bmv2.control import Controls
from compiler.bmv2.externs import externs
from compiler.bmv2.header import headers
from compiler.bmv2.parser import parsers
from compiler.bmv2.position import Positions
from compiler.bmv2.text import text_of
from compiler.diagnostics import Diagnostics
from compiler.preprocess import INCLUDE_DIR
from compiler.source import Text

__all__ = ["text_of", "write"]

FORMAT_VERSION = [2, 23]


def write(
    program: ir.Program, source: c.Program, text: Text, name: str, diagnostics: Diagnostics
) -> dict[str, Any]:
    """The program as a JSON object."""
    positions = Positions(text)
    controls = Controls(program, positions, diagnostics, PurePath(name).stem)
    pipelines = [controls.pipeline(p, i) for i, p in enumerate(program.pipelines)]
    outside = externs(program, positions)
    json: dict[str, Any] = headers(program)
    json["field_lists"] = outside["field_lists"]
    json["errors"] = [[each, index] for index, each in enumerate(source.errors)]
    json["enums"] = _enums(source, text)
    json.update(parsers(program, positions))
    for section in (
        "meter_arrays",
        "counter_arrays",
        "register_arrays",
        "calculations",
        "learn_lists",
    ):
        json[section] = outside[section]
    json["actions"] = controls.actions
    json["pipelines"] = pipelines
    json["checksums"] = outside["checksums"]
    json["force_arith"] = []
    json["extern_instances"] = []
    json["field_aliases"] = [[alias, [header, field]] for alias, header, field in program.aliases]
    json["program"] = name
    json["__meta__"] = {"version": FORMAT_VERSION, "compiler": "closlab"}
    return json


def _enums(source: c.Program, text: Text) -> list[dict[str, Any]]:
    """The program's own enums; the architecture's mean nothing at run time."""
    found = [e for e in source.types if isinstance(e, types.Enum) and e.decl is not None]
    return [
        {"name": e.name, "entries": [[m, i] for i, m in enumerate(e.members)]}
        for e in found
        if e.decl is not None and not _is_ours(text.position(e.decl.span).file)
    ]


def _is_ours(file: str) -> bool:
    return PurePath(file).parent == INCLUDE_DIR
