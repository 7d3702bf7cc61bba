"""What somebody may send to an assistant's door who means it harm, drawn by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

TOOLS = (
    *("list_scenarios", "explain", "run", "list_runs", "read_run"),
    *("slowest_messages", "why", "compare", "figure", "grade"),
)
KEYS = (
    *("containing", "word", "scenario", "set", "seed", "run", "host", "what", "runs", "name", "x"),
    *("lesson", "files", "folder"),
)


def _values(canary: str) -> list[Any]:
    """Of every kind that an argument may be given and should not be."""
    return [
        *("", "\0", "../..", canary, f"../../..{canary}", f"file://{canary}", "~/.ssh/id_rsa"),
        *("$(id)", "`id`", "; rm -rf /", "| cat", "%2e%2e%2f", "run-1/../..", "a" * 100_000),
        *(
            "\ud83d",
            "\u202e",
            "-1",
            "NaN",
            "null",
            "__class__",
            "{0.__class__}",
            "/proc/self/environ",
        ),
        *(None, True, -1, 2**63, 2**200, 1e308, [], {}, [[[[]]]], {"a": {"b": {"c": []}}}),
        *([canary] * 3, {"": ""}, {"pfc.enabled": canary}, ["run-1"] * 100),
    ]


def _scenarios(canary: str) -> list[Any]:
    """Scenarios that would read somebody's file, or take all that a machine has."""
    flows = {"kind": "flows", "flows": [{"src": "h1", "dst": "h2", "bytes": "1MB"}]}
    return [
        canary,
        f"{canary}.yaml",
        {"name": "x", "traffic": {"kind": "trace", "file": canary}},
        {"name": "x", "traffic": {"kind": "chakra", "files": [canary]}},
        {"name": "x", "traffic": {"kind": "poisson", "sizes": canary, "load": 0.5}},
        {"name": "x", "topology": {"kind": "file", "path": canary}},
        {"name": "x", "topology": {"kind": "file", "path": f"x/../..{canary}"}},
        {"name": "x", "topology": {"kind": "fat-tree", "k": 64}, "traffic": flows},
        {"name": "x", "topology": {"kind": "leaf-spine", "leaves": 10**9}, "traffic": flows},
        {"name": "x", "traffic": {**flows, "flows": flows["flows"] * 1000}, "seed": -1},
        {"name": "x" * 10_000, "traffic": flows},
        {"traffic": flows},
        {"name": "x\x1b[2J", "traffic": flows},
    ]


def calls(random_: random.Random, canary: str, count: int) -> Iterator[tuple[str, Any]]:
    """Tools and arguments; of those that start a process only the scenarios, each once."""
    for scenario in _scenarios(canary):
        yield "run", {"scenario": scenario}
        yield "run", {"scenario": "incast", "set": {"traffic": scenario}}
    values = _values(canary)
    for _ in range(count - 2 * len(_scenarios(canary))):
        name = random_.choice([*TOOLS, "shell", "", "../run"])
        keys = random_.sample(KEYS, random_.randint(0, 4))
        arguments: Any = {key: random_.choice(values) for key in keys}
        if name == "run" and random_.random() < 0.8:
            arguments["also"] = random_.choice(values)  # so that most do not become runs
        yield name, random_.choice([arguments, arguments, arguments, random_.choice(values)])


def lines(random_: random.Random, canary: str, count: int) -> Iterator[bytes]:
    """Of what is no request at all, or one at the wrong time, or of the wrong shape."""
    whole = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).encode()
    odd: list[Any] = [
        *(None, 1, [], {}, "x", [{}], {"jsonrpc": "2.0"}, {"id": 1}, {"method": "ping"}),
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": [], "method": "ping"},
        {"jsonrpc": "2.0", "id": 2**70, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [canary]},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": {}}},
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": f"file://{canary}"}},
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read",
         "params": {"uri": f"closlab://runs/../..{canary}/result.json"}},
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 3}},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "9"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}},
    ]  # fmt: skip
    for at in range(count):
        match at % 5:
            case 0:
                yield json.dumps(random_.choice(odd)).encode()
            case 1:
                yield whole[: random_.randrange(len(whole))]
            case 2:
                spoilt = bytearray(whole)
                for _ in range(3):
                    spoilt[random_.randrange(len(spoilt))] = random_.randrange(256)
                yield bytes(spoilt).replace(b"\n", b"?")
            case 3:
                yield random_.randbytes(random_.randint(1, 300)).replace(b"\n", b"?")
            case 4:
                deep = random_.choice([100, 10_000, 200_000])
                yield b"[" * deep if at % 2 else b'{"a":' * deep + b"1" + b"}" * deep
    yield b"x" * (3 << 20)  # longer than a line may be
