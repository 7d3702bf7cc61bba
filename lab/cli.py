"""The command line: ``closlab CMD``, each of them a file in `lab/commands/`.

What a command needs is imported when it is called, so that ``closlab list`` does not wait for gRPC.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lab.errors import LabError, of_the_machine

COMMANDS = (
    "demo",
    "run",
    "part",
    "compare",
    "report",
    "figure",
    "draw",
    "runs",
    "replay",
    "tune",
    "optimise",
    "why",
    "watch",
    "mcp",
    "otg",
    "gym",
    "lsp",
    "doctor",
    "sweep",
    "agree",
    "chaos",
    "claims",
    "reproduce",
    "bmwg",
    "list",
    "explain",
    "check",
    "import",
    "export",
    "lesson",
    "grade",
    "docs",
    "playground",
    "enter",
    "exec",
    "mpirun",
    "nccl-tests",
    "pcap",
    "frames",
    "shell",
    "test",
    "p4c",
    "switch",
    "stf",
    "bench",
    "shims",
)
_COMPLETION = "_CLOSLAB_COMPLETE"  # by which a shell says that it asks
_NEW_OBJECTS = 200_000  # after which garbage is looked for
_RESERVE_BYTES = 8 << 20  # in which one is told that there is no more
# What a command's file says it does. To read it as Python takes longer than all else of --help.
_SAYS = re.compile(r'^def (?:command|main)\(.*?:\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
_TAKE_THEIR_WORDS = ("p4c", "switch", "stf", "bench")  # as they are: they are another tool's flags


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command; typer would not say that it was interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_tell_interruption()) from None


def _tell_interruption() -> int:
    print("closlab: interrupted", file=sys.stderr)
    return 130


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # which reads mail's headers: a third of --help

        print(f"closlab {version('closlab')}")
        raise typer.Exit


def closlab(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which this is."),
    ] = False,
) -> None:
    """A lossless-Ethernet lab: a Clos of P4 switches under RoCEv2 traffic."""


def app_for(words: Sequence[str]) -> typer.Typer:
    """The commands: the one that is called whole, of the others what --help says of them."""
    app = typer.Typer(
        cls=_Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(closlab)
    called = next((word for word in words if not word.startswith("-")), None)
    for name in COMMANDS:
        if name == called:
            module = import_module(f"lab.commands.{_file_of(name)}")
            settings = {
                "ignore_unknown_options": getattr(module, "HAS_WORDS_OF_OTHERS", False),
                "allow_interspersed_args": not getattr(module, "ENDS_WITH_A_PROGRAM", False),
            }
            app.command(name, context_settings=settings)(module.command)
        else:
            app.command(name, help=None if called in COMMANDS else _title(name))(lambda: None)
    return app


def _words() -> list[str]:
    """The words of the command line; of one that a shell asks how to go on with, its words."""
    if _COMPLETION not in os.environ:
        return sys.argv[1:]
    asked = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return asked.split()[1:]


def _file_of(name: str) -> str:
    return name.replace("-", "_")


def _title(name: str) -> str:
    """What a command's file says it does, read without running it."""
    found = _SAYS.search((Path(__file__).parent / "commands" / f"{_file_of(name)}.py").read_text())
    return cleandoc(found[1]) if found else ""


def _all_is_read() -> None:
    """Look for garbage again, and never in the code; of what a command reads later, seldom."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
    gc.enable()


def _run() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in _TAKE_THEIR_WORDS:
        command = import_module(f"lab.commands.{sys.argv[1]}")
        _all_is_read()
        sys.exit(command.main(sys.argv[2:]))
    app = app_for(_words())
    _refuse_nothing(sys.argv[1:])
    _all_is_read()
    app(prog_name="closlab")


def main() -> None:
    """Run the command line."""
    reserve = bytearray(_RESERVE_BYTES)
    try:
        try:
            _run()
        except (MemoryError, SystemError) as error:
            reserve.clear()
            _let_go(error)
            raise
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what cannot be told is known here, and not after all is over
    except LabError as error:
        error.show()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(_tell_interruption())
    except BrokenPipeError:
        sys.exit(141)
    except (MemoryError, SystemError, OSError, RuntimeError, ImportError) as error:
        known = of_the_machine(error)
        if known is None:
            raise
        known.show()
        sys.exit(1)
    finally:
        _say_no_more()


def _let_go(error: BaseException | None) -> None:
    """Free what those hold who failed: without it there may be no memory to say so."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


def _refuse_nothing(words: Sequence[str]) -> None:
    """An empty word is a variable that is not set; as a path it would be where one stands."""
    for before, word in pairwise(words):
        if before == "--":  # a program's own words follow
            return
        name, is_given, value = word.partition("=")
        if not word or (is_given and not value and name in ("--out", "--p4", "--topology")):
            named = before if not word else name
            raise LabError(f"{named} is followed by nothing", "Name something, or leave it out.")


def _say_no_more() -> None:
    """Let what is still to be printed go nowhere if who was to hear it is gone, or has no room."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
