"""``closlab mcp``: an assistant's door, by the Model Context Protocol."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError, MissingTool


def command(
    folder: Annotated[
        Path | None, typer.Option(help="Whose runs and scenarios it may read; else none.")
    ] = None,
    keeps: Annotated[bool, typer.Option("--keep", help="Keep its runs in that folder.")] = False,
    seconds: Annotated[float, typer.Option(min=1, help="That a call may take.")] = 120,
    runs: Annotated[int, typer.Option(min=1, help="That it may make in all.")] = 200,
    hosts: Annotated[int, typer.Option(min=2, help="That a fabric may have.")] = 256,
) -> None:
    """Let an assistant list, run, compare and explain: speaks MCP over stdin and stdout.

    It reads, simulates and keeps nothing unless told to; it starts no program that anybody names.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingTool(
            "the package mcp is not installed",
            "The launcher brings it (./closlab mcp); in an environment of your own:  "
            "pip install 'closlab[mcp]'",
        )
    from doors.assistant.bounds import Bounds
    from doors.assistant.server import serve

    if folder is not None and not folder.is_dir():
        raise LabError(f"--folder: there is no folder {folder}", "Make it, or leave it out.")
    if keeps and folder is None:
        raise LabError("--keep goes with --folder DIR", "Say where runs are to be kept.")
    serve(Bounds(seconds=seconds, runs=runs, hosts=hosts), folder and folder.resolve(), keeps)
