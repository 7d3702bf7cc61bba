"""The protocol: tools and resources told, calls answered, all of it over stdin and stdout."""

from __future__ import annotations

import inspect
import json
import logging
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as t
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from doors.assistant.bounds import Bounds, is_within
from doors.assistant.cell import Answer, Cell
from doors.assistant.tools import TOOLS, Desk, Tool, asked
from doors.assistant.wire import wire
from files import FileError, read_text
from lab.errors import LabError, of_the_machine
from lab.machine.paths import ROOT, SCENARIOS
from lab.machine.scratch import gone_at_our_end
from lab.results.result import RESULT
from lab.scenario import shipped

_INSTRUCTIONS = """\
closlab simulates lossless Ethernet (PFC, ECN, RoCEv2) for AI fabrics packet by packet, on compiled
P4 switches. Look with list_scenarios, run one with `run`, and ask `why` what held a host or message
up: it proves causes by making the run again without them. Figures come with the command that gives
them. Keys are told by `explain`; the docs are resources."""
_SVG = "image/svg+xml"
_LAST = -1000  # what Python's processes have in it they remove before


def served(bounds: Bounds, folder: Path | None, keeps: bool, scratch: Path) -> Server[Desk]:
    """A server of one session, which lasts as long as it is connected."""
    own = folder if keeps and folder else scratch

    @asynccontextmanager
    async def session(_: Server[Desk]) -> AsyncIterator[Desk]:
        desk = Desk(bounds, Cell(bounds, (folder or own, own), scratch), own, folder)
        try:
            yield desk
        finally:
            desk.cell.close()

    return Server(
        "closlab",
        version=version("closlab"),
        instructions=_INSTRUCTIONS,
        lifespan=session,
        on_list_tools=_tools,
        on_call_tool=_call,
        on_list_resources=_resources,
        on_list_resource_templates=_templates,
        on_read_resource=_resource,
    )


def serve(bounds: Bounds, folder: Path | None, keeps: bool) -> None:
    """Serve whoever is at the other end of stdin and stdout, until that is closed."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # peers are told, and nobody else
    with _scratch() as scratch:
        tempfile.tempdir = str(scratch)  # what Python's processes leave if this one is killed, too
        anyio.run(partial(_serve, served(bounds, folder, keeps, scratch)))


@contextmanager
def _scratch() -> Iterator[Path]:
    scratch = Path(tempfile.mkdtemp(prefix="closlab-mcp-")).resolve()
    Finalize(None, shutil.rmtree, [scratch, True], exitpriority=_LAST)
    with gone_at_our_end(scratch):
        yield scratch


async def _serve(server: Server[Desk]) -> None:
    with wire() as ends:
        async with stdio_server(ends, ends) as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())


# --- tools ---------------------------------------------------------------------------------------


async def _tools(ctx: Any, params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[_listed(tool) for tool in TOOLS.values()])


def _listed(tool: type[Tool]) -> t.Tool:
    schema = tool.model_json_schema()
    schema.pop("description", None)
    return t.Tool(
        name=tool.called,
        description=" ".join(inspect.cleandoc(tool.__doc__ or "").split()),
        input_schema=schema,
        annotations=t.ToolAnnotations(
            read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False
        ),
    )


async def _call(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
    if params.name not in TOOLS:
        known = ", ".join(TOOLS)
        raise MCPError(
            t.INVALID_PARAMS, f"there is no tool {params.name[:80]!r}; there are {known}"
        )
    desk: Desk = ctx.lifespan_context
    stop = threading.Event()
    try:
        tool = asked(params.name, params.arguments or {})
        answer = await anyio.to_thread.run_sync(_done, tool, desk, stop, abandon_on_cancel=True)
        return _answered(answer, desk.bounds)
    except LabError as error:
        message = " ".join(filter(None, (f"{error.message}.", error.cure)))
        return t.CallToolResult(content=[t.TextContent(text=message)], is_error=True)
    finally:
        stop.set()  # whoever called it off waits no longer


def _done(tool: Tool, desk: Desk, stop: threading.Event) -> Answer:
    try:
        return tool.do(desk, stop)
    except (MemoryError, OSError, RuntimeError) as error:
        raise (of_the_machine(error) or LabError(f"it failed: {error}"[:500])) from None


def _answered(answer: Answer, bounds: Bounds) -> t.CallToolResult:
    if svg := answer.get("svg"):
        inside = t.TextResourceContents(uri="closlab://figure.svg", mime_type=_SVG, text=svg)
        return t.CallToolResult(content=[t.EmbeddedResource(resource=inside)])
    text = json.dumps(answer, indent=1, ensure_ascii=False)
    if len(text) > bounds.answer_bytes:
        raise LabError(
            f"the answer takes {len(text):,} bytes, and may take {bounds.answer_bytes:,}",
            "Ask for less of it.",
        )
    return t.CallToolResult(content=[t.TextContent(text=text)], structured_content=answer)


# --- resources -----------------------------------------------------------------------------------


def _pages() -> Mapping[str, tuple[Path, str]]:
    """What is always there, by address: its file, and what kind of text that is."""
    docs = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = {
        f"closlab://docs/{page.stem}": (page, "text/markdown") for page in docs if page.exists()
    }
    for name in shipped.names():
        found[f"closlab://scenarios/{name}"] = (SCENARIOS / f"{name}.yaml", "application/yaml")
    return found


def _results(desk: Desk) -> Iterator[tuple[str, Path, str]]:
    for name, folder in desk.kept().items():
        for file, kind in ((RESULT, "application/json"), ("flows.csv", "text/csv")):
            if is_within(folder / file, folder) and (folder / file).is_file():
                yield f"closlab://runs/{name}/{file}", folder / file, kind


async def _resources(ctx: Any, params: Any) -> t.ListResourcesResult:
    every = [(uri, path, kind) for uri, (path, kind) in _pages().items()]
    every += [*_results(ctx.lifespan_context)]
    return t.ListResourcesResult(
        resources=[
            t.Resource(uri=uri, name=uri.removeprefix("closlab://"), mime_type=kind)
            for uri, _, kind in every
        ]
    )


async def _templates(ctx: Any, params: Any) -> t.ListResourceTemplatesResult:
    return t.ListResourceTemplatesResult(
        resource_templates=[
            t.ResourceTemplate(
                name="What a run came to",
                uri_template="closlab://runs/{run}/result.json",
                mime_type="application/json",
            )
        ]
    )


async def _resource(ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    desk: Desk = ctx.lifespan_context
    uri = str(params.uri)
    found = _pages().get(uri) or {known: (path, kind) for known, path, kind in _results(desk)}.get(
        uri
    )
    if found is None:
        raise MCPError(t.INVALID_PARAMS, f"there is no resource {uri[:120]!r}")
    path, kind = found
    try:
        text = read_text(path, desk.bounds.answer_bytes * 10)
    except FileError as error:
        raise MCPError(t.INVALID_PARAMS, str(error)[:300]) from None
    return t.ReadResourceResult(
        contents=[t.TextResourceContents(uri=params.uri, mime_type=kind, text=text)]
    )
