"""The driver: the passes in the order they run, and why each is there.

    preprocess   #include, #define and #if are gone; every place still knows its file and line
    tokens       text becomes words
    syntax       words become a tree; broken declarations are skipped, so many errors show at once
    types        names get their meaning, expressions their types, constants their values
    lower        `main` becomes storage, tables and a graph of straight-line code
    json         the graph as BMv2 loads it
    p4info       what the control plane may see, as P4Runtime describes it; of a program without
                 `main` too, if it is asked for by name

A stage runs only if the ones before it found no error, since it would report their echoes.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler import bmv2, ir
from compiler.check import check
from compiler.diagnostics import CompileError, Diagnostic, Diagnostics, TooManyErrorsError
from compiler.instances import Instances
from compiler.lexer import tokenize
from compiler.lower import lower
from compiler.parser import parse
from compiler.preprocess import Preprocessor
from compiler.source import NOWHERE
from params.data import Data

if TYPE_CHECKING:
    from finsy.proto import p4i

    from compiler import core as c
    from compiler import syntax as s
    from compiler.lexer import Tokens
    from compiler.source import Text

STAGES = ("preprocess", "tokens", "syntax", "types", "lower", "json", "p4info")
_RECURSION_LIMIT = 20_000


class CompileOptions(Data):
    """What a compilation may be told."""

    include_dirs: tuple[Path, ...] = ()
    only_beside: bool = False  # a stranger's program includes what lies in its folder, and ours
    defines: tuple[str, ...] = ()
    undefines: tuple[str, ...] = ()
    disabled_warnings: frozenset[str] = frozenset()
    no_warnings: bool = False
    werror: bool = False
    stop_after: str = "json"
    program_name: str | None = None


class Compiled(Data, frozen=False):
    """What came of a program, stage by stage."""

    diagnostics: tuple[Diagnostic, ...] = ()
    text: Text | None = None
    tokens: Tokens | None = None
    syntax: s.Program | None = None
    core: c.Program | None = None
    ir: ir.Program | None = None
    instances: Instances | None = None
    json: dict[str, Any] = field(default_factory=dict)
    _diagnostics: Diagnostics = field(default_factory=Diagnostics)

    @cached_property
    def json_text(self) -> str:
        """The JSON as it is written to a file."""
        return bmv2.text_of(self.json) + "\n"

    @cached_property
    def p4info(self) -> p4i.P4Info:
        """The P4Info message."""
        from compiler.p4info import build

        assert self.core is not None
        assert self.ir is not None
        assert self.instances is not None
        return build(self.core, self.ir, self.instances, self._diagnostics)


def compile_program(path: Path, options: CompileOptions | None = None) -> Compiled:
    """Compile a P4 program; `CompileError` tells what is wrong with it."""
    options = options or CompileOptions()
    diagnostics = Diagnostics(
        disabled=options.disabled_warnings, werror=options.werror, quiet=options.no_warnings
    )
    result = Compiled(_diagnostics=diagnostics)
    limit, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    gc.disable()  # trees that stay: to look through them for garbage takes a fifth of the time
    try:
        _run(path, options, diagnostics, result)
    except TooManyErrorsError:
        diagnostics.add(
            Diagnostic("error", "too-many-errors", "too many errors, giving up", "", None)
        )
        raise CompileError(diagnostics.found) from None
    except RecursionError:
        diagnostics.error(
            "too-deep",
            NOWHERE,
            "the program is nested too deeply",
            "use variables for parts of long expressions",
        )
        raise CompileError(diagnostics.found) from None
    finally:
        if collects:
            gc.enable()
        sys.setrecursionlimit(limit)
    result.diagnostics = tuple(diagnostics.found)
    return result


def _run(path: Path, options: CompileOptions, diagnostics: Diagnostics, result: Compiled) -> None:
    def done(stage: str) -> bool:
        diagnostics.check()
        return options.stop_after == stage

    preprocessor = Preprocessor(diagnostics, options.include_dirs, options.only_beside)
    for definition in options.defines:
        preprocessor.define(definition)
    for name in options.undefines:
        preprocessor.macros.pop(name, None)
    result.text = preprocessor.run(path)
    if done("preprocess"):
        return None
    result.tokens = tokenize(result.text.text, diagnostics)
    if options.stop_after == "tokens":
        return diagnostics.check()
    result.syntax = parse(result.tokens, diagnostics)
    if done("syntax"):
        return None
    result.core = check(result.syntax, diagnostics)
    if done("types"):
        return None
    if result.core.main is None:
        # What a library declares is in P4Info all the same, as p4c has it.
        report = diagnostics.warning if options.stop_after == "p4info" else diagnostics.error
        report(
            "no-main",
            NOWHERE,
            f"{path}: the program has no 'main'",
            "end it with: V1Switch(MyParser(), ...) main;",
        )
        diagnostics.check()
        result.ir = ir.Program()
        result.instances = Instances(result.ir, diagnostics)
        return None
    result.ir, result.instances = lower(result.core, diagnostics)
    if done("lower"):
        return None
    name = options.program_name or str(path)
    result.json = bmv2.write(result.ir, result.core, result.text, name, diagnostics)
    diagnostics.check()
    return None
