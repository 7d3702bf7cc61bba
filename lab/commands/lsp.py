"""``closlab lsp``: an editor's door, by the Language Server Protocol."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError, MissingTool


def command(
    tcp: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="Serve editors there; 0: any."),
    ] = None,
    host: Annotated[str, typer.Option(help="With --tcp: at which address.")] = "127.0.0.1",
    include: Annotated[
        list[Path] | None, typer.Option("-I", help="Look for include files there too.")
    ] = None,
    define: Annotated[
        list[str] | None, typer.Option("-D", metavar="NAME[=VALUE]", help="Define a macro.")
    ] = None,
) -> None:
    """Help an editor with P4: what is wrong, what a name is, where it is used, how it goes on.

    Speaks LSP over stdin and stdout; reads files, and starts and writes nothing.
    """
    if importlib.util.find_spec("pygls") is None:
        raise MissingTool(
            "the package pygls is not installed",
            "The launcher brings it (./closlab lsp); in an environment of your own:  "
            "pip install 'closlab[lsp]'",
        )
    from doors.editor.program import Settings
    from doors.editor.server import serve_stdio, serve_tcp

    for folder in include or ():
        if not folder.is_dir():
            raise LabError(f"-I: there is no folder {folder}", "Name one, or leave it out.")
    settings = Settings(tuple(each.resolve() for each in include or ()), tuple(define or ()))
    if tcp is None:
        raise typer.Exit(serve_stdio(settings))
    serve_tcp(settings, host, tcp, lambda port: print(f"at {host}:{port}", file=sys.stderr))
