"""closlab mcp: its client's questions are answered, and nobody's harm is done."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from doors.assistant.bounds import Bounds
from lab import api
from lab.machine.paths import ROOT
from tests.doors import hostile_requests
from tests.lab.conftest import closlab

if TYPE_CHECKING:  # which takes longer to read than all else that tests import
    from mcp.client.client import Client

SERVER = ("-c", "from lab.start import main; main()", "mcp")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4},
    "traffic": {"kind": "incast", "receiver": "h1", "senders": 7, "bytes": "100KB"},
}


def _with(
    ask: Callable[[Client], Awaitable[None]],
    bounds: Bounds | None = None,
    folder: Path | None = None,
    *,
    keeps: bool = False,
) -> None:
    """A session in this process."""
    from mcp.client.client import Client

    from doors.assistant.server import served

    async def session() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            async with Client(
                served(bounds or Bounds(), folder, keeps, Path(scratch).resolve())
            ) as client:
                await ask(client)

    anyio.run(session)


async def _answer(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def _refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer
    return str(answer.content[0].text)


def test_a_session_answers_why_h8_was_slow(tmp_path: Path) -> None:
    """As an assistant asks: by the protocol's own client, the server a process of its own."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def session() -> None:
        server = StdioServerParameters(command=sys.executable, args=[*SERVER], env=ENVIRONMENT)
        async with Client(stdio_client(server)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "h8" in str(tools["why"].description)
            assert [
                name for name, tool in tools.items() if not tool.annotations.read_only_hint
            ] == ["run"]
            assert "incast" in (await _answer(client, "list_scenarios"))["scenarios"]
            assert "kmin" in (await _answer(client, "explain", word="ecn"))["told"]
            run = await _answer(client, "run", scenario="incast")
            assert run["command"] == "closlab run incast --engine sim"
            assert "h8" in run["verdict"] and run["figures"]["pfc.xoff_frames"] > 0
            worst = await _answer(client, "slowest_messages", run=run["run"], host="h8")
            why = await _answer(client, "why", run=run["run"], what="h8")
            assert why["found"]["what"] == "h8-h1"
            assert why["found"]["took_ns"] == worst["slowest"][0]["fct_ns"]
            (share,) = why["found"]["shares"]
            assert share["share"] > 0.95 and share["roots"][0]["what"] == "6 messages to h1"
            resource = await client.read_resource(f"closlab://runs/{run['run']}/result.json")
            kept = json.loads(resource.contents[0].text)
            assert kept["pfc"]["xoff_frames"] == run["figures"]["pfc.xoff_frames"]

    anyio.run(session)


def test_what_tools_tell_is_what_the_api_tells(tmp_path: Path) -> None:
    from mcp.shared.exceptions import MCPError

    async def ask(client: Client) -> None:
        first = await _answer(client, "run", scenario=SMALL)
        changed = {"pfc.enabled": False, "transport.recovery": "selective"}
        second = await _answer(client, "run", scenario=SMALL, set=changed, seed=5)
        assert [first["run"], second["run"]] == (await _answer(client, "list_runs"))["runs"]
        own = api.run(SMALL, set=changed, seed=5)
        assert second["verdict"] == own.verdict and second["seed"] == 5
        assert second["figures"]["links.max_queue_bytes"] == max(
            link.max_queue_bytes or 0 for link in own.result.links
        )
        assert (await _answer(client, "read_run", run="run-2"))["figures"] == second["figures"]
        compared = await _answer(client, "compare", runs=["run-1", "run-2"])
        assert [run["name"] for run in compared["runs"]] == ["run-1", "run-2"]
        named = await _answer(client, "figure", run="run-1")
        svg = await client.call_tool(
            "figure", {"run": "run-1", "name": next(iter(named["figures"]))}
        )
        assert svg.content[0].resource.text.startswith("<svg")
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("shell", {"command": "id"})

    _with(ask)
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_a_solution_is_graded_as_at_a_terminal_and_shut_in(tmp_path: Path) -> None:
    lesson = ROOT / "exercises" / "01-forwarding"
    right = {each.name: each.read_text() for each in (lesson / "solution").iterdir()}
    folder, secret = tmp_path / "own", tmp_path / "secret"
    shutil.copytree(lesson / "skeleton", folder / "mine")
    shutil.copytree(lesson / "solution", secret)
    (folder / "link").symlink_to(secret)

    async def ask(client: Client) -> None:
        found = await _answer(client, "grade", lesson="1", files=right)
        own = closlab("grade", "1", str(lesson / "solution"), "--format", "json")
        assert found["passed"] and own.returncode == 0
        assert found["checks"] and [
            (each["check"], each["state"], each["score"]) for each in found["checks"]
        ] == [(e["check"], e["state"], e["score"]) for e in json.loads(own.stdout)["checks"]]
        found = await _answer(client, "grade", lesson="forwarding", folder="mine")
        assert not found["passed"] and any(each["what"] for each in found["checks"])
        for given, said in (
            ({"lesson": "1", "folder": "link"}, "outside the folder"),
            ({"lesson": "1", "folder": "../secret"}, "outside the folder"),
            ({"lesson": "1", "folder": "none"}, "there is no folder"),
            ({"lesson": "99", "files": right}, "99"),
            ({"lesson": "1"}, "nothing, or two things"),
            ({"lesson": "1", "files": {"../x.p4": ""}}, "no file's name"),
            ({"lesson": "1", "files": {"x.p4": "x" * (1 << 19)}}, "at most"),
        ):
            assert said in await _refused(client, "grade", **given), given

    _with(ask, folder=folder)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["own", "secret"]


def test_bounds_hold_and_are_told() -> None:
    async def ask(client: Client) -> None:
        assert "10 hosts" not in await _refused(client, "run", scenario="incast")
        assert "8 hosts are more than the 4" in await _refused(client, "run", scenario="incast")
        small = {"topology.hosts_per_leaf": 1, "traffic.senders": 1, "topology.leaves": 2}
        assert "made its 3 runs" not in await _refused(
            client, "run", scenario="incast", set={**small, "traffic.bytes": "100GB"}
        )
        assert "made its 3 runs" in await _refused(client, "run", scenario="incast")

    _with(ask, Bounds(hosts=4, runs=3, seconds=2))


def test_ten_calls_at_once_are_answered_or_told_to_wait() -> None:
    async def ask(client: Client) -> None:
        said: list[str] = []

        async def one() -> None:
            answer = await client.call_tool("run", {"scenario": SMALL})
            said.append(str(answer.content[0].text) if answer.is_error else "done")

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
        assert said.count("done") >= 2
        assert all("2 calls are under way" in each for each in said if each != "done")
        assert len(said) == 10

    _with(ask)


def test_it_reads_and_keeps_only_in_its_folder(tmp_path: Path) -> None:
    folder, secret = tmp_path / "own", tmp_path / "secret.yaml"
    (folder / "sub").mkdir(parents=True)
    secret.write_text("name: SECRET-WORD\n")
    (folder / "link.yaml").symlink_to(secret)
    (folder / "run-x").symlink_to(tmp_path)
    (folder / "mine.yaml").write_text(json.dumps(SMALL))
    (folder / "bad.yaml").write_text(
        json.dumps({**SMALL, "topology": {"kind": "file", "path": str(secret)}})
    )

    async def ask(client: Client) -> None:
        made = await _answer(client, "run", scenario="mine.yaml")
        assert (folder / made["run"] / "result.json").is_file()
        for scenario in (
            "link.yaml",
            "bad.yaml",
            str(secret),
            "../secret.yaml",
            "sub/../../x.yaml",
        ):
            said = await _refused(client, "run", scenario=scenario)
            assert "outside the folder" in said and "SECRET" not in said
        for name in ("run-x", "..", ".", "/", f"{made['run']}/../.."):
            assert "there is no run" in await _refused(client, "read_run", run=name)

    _with(ask, folder=folder, keeps=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own", "secret.yaml"]


@pytest.mark.slow
def test_five_hundred_hostile_requests_are_answered_and_do_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("CANARY-7f3a\n")
    before = sorted(tmp_path.iterdir())
    drawn = random.Random(20260101)
    server = subprocess.Popen(
        [sys.executable, *SERVER, "--seconds", "20", "--runs", "60"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=tmp_path, env=ENVIRONMENT,
    )  # fmt: skip
    answers: dict[Any, Any] = {}
    refused = 0

    def ask(number: int, method: str, params: Any = None) -> None:
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        _send(server, json.dumps(request).encode())
        while number not in answers:
            line = server.stdout.readline()
            assert line, server.stderr.read()[-3000:]
            assert b"CANARY" not in line and b"Traceback" not in line
            said = json.loads(line)
            answers[said.get("id")] = said
            nonlocal refused
            refused += "error" in said

    count = 0
    for line in hostile_requests.lines(drawn, str(canary), 100):  # before anybody said who he is
        _send(server, line)
        count += 1
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
    ask(100_000, "initialize", hello)
    assert "result" in answers[100_000]
    _send(server, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    for line in hostile_requests.lines(drawn, str(canary), 100):
        _send(server, line)
        count += 1
    ask(150_000, "ping")
    assert refused > 150  # of those 202, all but what is an answer or a notification itself
    done = 0
    for at, (name, arguments) in enumerate(hostile_requests.calls(drawn, str(canary), 300)):
        ask(200_000 + at, "tools/call", {"name": name, "arguments": arguments})
        said = answers[200_000 + at]
        done += "result" in said and not said["result"].get("isError", False)
        count += 1
    assert count >= 500 and done < 60
    ask(300_000, "tools/list")
    assert len(answers[300_000]["result"]["tools"]) == len(hostile_requests.TOOLS)
    _send(server, b"")
    server.stdin.close()
    assert server.wait(20) == 0
    assert b"Traceback" not in server.stderr.read()
    assert sorted(tmp_path.iterdir()) == before and canary.read_text() == "CANARY-7f3a\n"


def _send(server: subprocess.Popen[bytes], line: bytes) -> None:
    server.stdin.write(line + b"\n")
    server.stdin.flush()


@pytest.mark.parametrize(
    "how",
    [
        "leaves",
        *(pytest.param(how, marks=pytest.mark.slow) for how in ("is killed", "is interrupted")),
    ],
)
def test_a_client_that_leaves_ends_what_it_began(how: str, tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, *SERVER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=tmp_path, env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    large = {**SMALL, "traffic": {**SMALL["traffic"], "bytes": "2GB"}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
    for number, method, params in (
        (1, "initialize", hello),
        (None, "notifications/initialized", {}),
        (2, "tools/call", {"name": "run", "arguments": {"scenario": large}}),
    ):
        numbered = {} if number is None else {"id": number}
        request = {"jsonrpc": "2.0", **numbered, "method": method, "params": params}
        _send(server, json.dumps(request).encode())
    assert server.stdout.readline()
    _until(lambda: len(_below(server.pid)) > 2)  # the run has its process
    family = _below(server.pid)
    match how:
        case "leaves":
            server.stdin.close()
        case "is killed":
            server.kill()
        case _:
            server.send_signal(signal.SIGINT)
    server.wait(20)
    _until(lambda: not [pid for pid in family if Path(f"/proc/{pid}").exists()])
    _until(lambda: not [*tmp_path.iterdir()])
    for stream in (server.stdin, server.stdout, server.stderr):
        stream.close()


def _below(pid: int) -> list[int]:
    """All processes that one has begun, and they."""
    found = []
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        for each in map(int, child.read_text().split()):
            found += [each, *_below(each)]
    return found


def _until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_is_wrong_with_the_command_is_told(tmp_path: Path) -> None:
    for words, said in (
        (("--folder", str(tmp_path / "none")), "there is no folder"),
        (("--keep",), "--keep goes with --folder"),
    ):
        done = closlab("mcp", *words)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
