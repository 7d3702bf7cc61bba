"""Small programs for tests: BMv2 JSON made by hand, and P4 through the compiler."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from switch.dataplane import Dataplane, Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]

STANDARD_FIELDS = [
    ["ingress_port", 9, False],
    ["egress_spec", 9, False],
    ["egress_port", 9, False],
    ["instance_type", 32, False],
    ["packet_length", 32, False],
    ["enq_timestamp", 32, False],
    ["enq_qdepth", 19, False],
    ["deq_timedelta", 32, False],
    ["deq_qdepth", 19, False],
    ["ingress_global_timestamp", 48, False],
    ["egress_global_timestamp", 48, False],
    ["mcast_grp", 16, False],
    ["egress_rid", 16, False],
    ["checksum_error", 1, False],
    ["parser_error", 32, False],
    ["priority", 3, False],
]
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort"]
ERRORS += ["ParserTimeout", "ParserInvalidArgument"]


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def const(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json | None, right: Json, cond: Json | None = None) -> Json:
    value: Json = {"op": name, "left": left, "right": right}
    if cond is not None:
        value["cond"] = cond
    return {"type": "expression", "value": value}


def assign(target: Json, value: Json) -> Json:
    if value["type"] == "expression":
        value = {"type": "expression", "value": value}
    return {"op": "assign", "parameters": [target, value]}


def call(name: str, *args: Json) -> Json:
    return {"op": name, "parameters": list(args)}


def one_action(headers: dict[str, list[tuple[str, int, bool]]], body: list[Json]) -> Json:
    """A program that extracts all headers, runs one action, and sends them on by port 1."""
    types = [
        {"name": n, "id": i, "fields": [list(f) for f in fs]}
        for i, (n, fs) in enumerate(headers.items())
    ]
    types.append({"name": "standard_metadata", "id": len(types), "fields": STANDARD_FIELDS})
    send = assign(field("standard_metadata", "egress_spec"), const(1))
    extracts = [{"op": "extract", "parameters": [{"type": "regular", "value": n}]} for n in headers]
    table = {
        "name": "run", "id": 0, "match_type": "exact", "type": "simple", "max_size": 1, "key": [],
        "actions": ["act"], "action_ids": [0], "next_tables": {"act": None},
        "default_entry": {"action_id": 0, "action_const": True, "action_data": []},
    }  # fmt: skip
    return {
        "__meta__": {"version": [2, 18]},
        "header_types": types,
        "headers": [
            {"name": n, "id": i, "header_type": n, "metadata": n == "standard_metadata"}
            for i, n in enumerate([*headers, "standard_metadata"])
        ],
        "errors": [[name, number] for number, name in enumerate(ERRORS)],
        "parsers": [
            {
                "name": "parser",
                "id": 0,
                "init_state": "start",
                "parse_states": [
                    {
                        "name": "start",
                        "id": 0,
                        "parser_ops": extracts,
                        "transition_key": [],
                        "transitions": [{"type": "default", "value": None, "next_state": None}],
                    }
                ],
            }
        ],
        "deparsers": [{"name": "deparser", "id": 0, "order": list(headers)}],
        "actions": [{"name": "act", "id": 0, "runtime_data": [], "primitives": [*body, send]}],
        "pipelines": [
            {"name": "ingress", "id": 0, "init_table": "run", "tables": [table]},
            {"name": "egress", "id": 1, "init_table": None, "tables": []},
        ],
    }


@cache
def compiled(path: Path) -> Program:
    """A P4 program, through the compiler."""
    from compiler.driver import compile_program

    return Program.load(json.dumps(compile_program(path).json).encode(), name=path.stem)


def outputs(program: Program, frames: list[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """What leaves for each frame, each at a time of its own."""
    with Dataplane("test", program) as dataplane:
        for port in range(16):
            dataplane.add_port(port)
        for i, (port, frame) in enumerate(frames):
            dataplane.inject(port, frame, 1000 * (i + 1))
            yield [(p, f) for p, f, _ in dataplane.outputs()]


def load(source: Json) -> Program:
    return Program.load(json.dumps(source).encode())
