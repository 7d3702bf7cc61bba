"""What each file of the fabric program reads and writes, by the compiler, and what its top says.

    python -m tests.fabric.contracts        prints what each file does, and where its top is wrong

A contract names fields (`meta.priority`), headers (`hdr.int_*`), registers of other files and some
parts of the packet in words. What a file declares for itself it need not name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field, fields, is_dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

from compiler import core as c
from compiler.driver import Compiled, CompileOptions, compile_program
from compiler.source import Span
from params.data import Data
from tests.imports import ROOT

FOLDER = ROOT / "p4src"
PROGRAM = FOLDER / "fabric.p4"
PLAIN = CompileOptions(stop_after="types")
ROOTS = ("hdr", "meta", "standard_metadata")
_NO_BLOCK = frozenset(("fabric.p4", "headers.p4", "sizes.p4", "types.p4"))  # of the diagram
WORDS: dict[str, tuple[str, ...]] = {  # what people call otherwise; any of it is meant
    "the IP header": ("hdr.ipv4", "hdr.ipv6", "hdr.carrier"),
    "the MAC addresses": ("hdr.ethernet",),
    "the (ingress |egress )?ports?": (
        "standard_metadata.ingress_port",
        "standard_metadata.egress_port",
    ),
    "the packet's length": ("standard_metadata.packet_length",),
    "the packet's kind": ("standard_metadata.instance_type",),
    "the clock": (
        "standard_metadata.ingress_global_timestamp",
        "standard_metadata.egress_global_timestamp",
    ),
}
_ELSEWHERE = frozenset(("span", "type", "decl", "symbol", "callee", "action"))  # or nothing read
_NAME = re.compile(r"((?:meta|hdr|standard_metadata)(?:\.\w+\*?)?)(?:\.\w+)*|\b([a-z]\w*_\w*\*?)")
_DECLARES = re.compile(r"^\s*(?:@\w+\s+)*(register|counter)\b[^;]*?(\w+);", re.M)


class Contract(Data, frozen=False):
    """Names that a file reads and writes: fields of metadata, headers, registers of others."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


@cache
def done() -> dict[str, Contract]:
    """By file: what its controls, parsers and actions do, with what is compiled in for BMv2."""
    options = CompileOptions(stop_after="types", defines=("PARKING", "INC"))
    return {**does(compile_program(PROGRAM, options)), **does(compile_program(PROGRAM, PLAIN))}


def does(program: Compiled) -> dict[str, Contract]:
    """The same of one program."""
    found: dict[str, Contract] = {}
    core, text = program.core, program.text
    assert core is not None and text is not None

    def file_of(span: Span) -> str:
        return Path(text.position(span).file).name

    for part in (*core.blocks, *core.functions, *core.actions):
        file = file_of(part.decl.span)
        _Walk(file, file_of, found.setdefault(file, Contract())).of(part)
    ours = {path.name for path in FOLDER.glob("*.p4")} - _NO_BLOCK
    return {file: contract for file, contract in found.items() if file in ours}


def order(control: str) -> list[str]:
    """The files whose blocks a control of the diagram applies, in its order."""
    program = compile_program(PROGRAM, PLAIN)
    core, text = program.core, program.text
    assert core is not None and text is not None
    (block,) = (block for block in core.blocks if block.name == control)
    applied = [*_applied(block.body)] if isinstance(block, c.Control) else []
    files = [Path(text.position(each.decl.span).file).stem for each in applied]
    return [file for at, file in enumerate(files) if not at or files[at - 1] != file]


def _applied(node: Any) -> Iterator[c.Parser | c.Control]:
    """The blocks applied below a statement, as they stand there."""
    match node:
        case c.Call(callee=c.BlockApply(instance=c.Instance(block=block))) if block:
            yield block
        case list() | tuple():
            for each in node:
                yield from _applied(each)
        case _ if isinstance(node, c.Statement | c.SwitchCase):
            for part in fields(node):
                yield from _applied(getattr(node, part.name))


@cache
def registers() -> frozenset[str]:
    """All that the program has."""
    texts = (path.read_text() for path in FOLDER.glob("*.p4"))
    declared = (each for text in texts for each in _DECLARES.findall(text))
    return frozenset(name for kind, name in declared if kind == "register")


class _Walk:
    """Through the typed tree of one block, in whatever order."""

    def __init__(self, file: str, file_of: Callable[[Span], str], contract: Contract) -> None:
        self._file = file
        self._file_of = file_of
        self._contract = contract

    def of(self, block: Any) -> None:
        for part in ("locals", "body", "states"):
            self._read(getattr(block, part, None))

    def _read(self, node: Any) -> None:
        """All below a node, as what is read."""
        match node:
            case c.Assign(target=target, value=value):
                self._write(target)
                self._read(value)
            case c.Call():
                self._call(node)
            case c.Field() | c.StackPart() | c.Index() if name := _named(node):
                self._contract.reads.add(name)
                self._read(getattr(node, "index", None))
            case dict():
                self._read(list(node.values()))
            case list() | tuple():
                for each in node:
                    self._read(each)
            case c.Instance():
                pass
            case _ if is_dataclass(node):
                for part in fields(node):
                    if part.name not in _ELSEWHERE:
                        self._read(getattr(node, part.name))

    def _write(self, target: Any) -> None:
        if name := _named(target):
            self._contract.writes.add(name)
        elif isinstance(target, c.Slice | c.Field | c.Index | c.StackPart):
            self._write(target.base)
            self._read(getattr(target, "index", None))

    def _call(self, call: c.Call) -> None:
        """Arguments by their direction; a block of ours that is handed all has its own contract."""
        callee = call.callee
        if isinstance(callee, c.Builtin):
            sets = callee.name in ("setValid", "setInvalid")
            (self._write if sets else self._read)(call.base)
        if isinstance(callee, c.ExternCall):
            self._register(call, callee.method.name)
        for arg, direction in zip(call.args, _directions(callee), strict=False):
            if isinstance(arg, c.Ref) and arg.symbol.name in ROOTS:
                if isinstance(callee, c.ExternCall) and "out" in direction:
                    self._contract.writes.add(arg.symbol.name)
                continue
            if "out" in direction:
                self._write(arg)
            if direction != "out":
                self._read(arg)

    def _register(self, call: c.Call, method: str) -> None:
        match call.base:
            case c.InstanceRef(instance=instance) if instance.name in registers():
                if self._file_of(instance.decl_span) != self._file:
                    touched = self._contract.writes if method == "write" else self._contract.reads
                    touched.add(instance.name)


def _directions(callee: c.Callee) -> Iterator[str]:
    match callee:
        case c.BlockApply(instance=c.Instance(block=block)) if block:
            yield from (param.direction for param in block.params)
        case c.ExternCall(method=method):
            yield from (param.direction for param in method.params)
        case c.Function(params=params) | c.Action(params=params):
            yield from (param.direction for param in params)
    yield from repeat("in")


def _named(node: Any) -> str | None:
    """A field of metadata, or a header, as contracts name it."""
    path: list[str] = []
    while True:
        match node:
            case c.Field(base=base, name=name):
                path.append(name)
                node = base
            case c.StackPart(base=base) | c.Index(base=base) | c.Slice(base=base):
                node = base
            case c.Ref(symbol=symbol) if symbol.name in ROOTS and path:
                return f"{symbol.name}.{path[-1]}"
            case _:
                return None


def said_of(file: Path) -> Contract:
    """What the top of a file says."""
    lines = []
    for line in file.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    text = "\n".join(lines)
    return Contract(_names(_said(text, "Reads")), _names(_said(text, "Writes")))


def _said(text: str, label: str) -> str:
    found = re.search(rf"^{label}:(.*?)(?=^(?:Reads|Writes|Stops):|\n\n|\Z)", text, re.M | re.S)
    return " ".join(found[1].split()) if found else ""


def _names(said: str) -> set[str]:
    words = {each for each in WORDS if re.search(rf"(?:^|[,;:(] |and |of |in ){each}", said)}
    words |= {name for name in registers() if re.search(rf"(?<!the )\b{name}\b", said)}
    return words | {whole or name for whole, name in _NAME.findall(said)}


def wrong(file: str, does: Contract) -> Iterator[str]:
    """What a contract leaves out, and what it says that is not so."""
    says, own = (
        said_of(FOLDER / file),
        {name for _, name in _DECLARES.findall((FOLDER / file).read_text())},
    )
    for label, real, needed, named in (
        ("Reads", does.reads, does.reads - does.writes, says.reads - own),
        ("Writes", does.writes, does.writes, says.writes - own),
    ):
        for name in sorted(needed):
            if not any(_covers(pattern, name) for pattern in named):
                yield f"{file}: {label} leaves out {name}"
        for pattern in sorted(named):
            if not any(_covers(pattern, name) for name in real):
                yield f"{file}: {label} names {pattern}, and it does not"


def _covers(pattern: str, name: str) -> bool:
    return (
        name in WORDS.get(pattern, (pattern,))
        or fnmatchcase(name, pattern)
        or name.startswith(f"{pattern}.")
    )


def main() -> None:
    """Print what files do, and what is wrong with what they say."""
    for file, does in sorted(done().items()):
        print(f"{file}\n  reads  {', '.join(sorted(does.reads))}")
        print(f"  writes {', '.join(sorted(does.writes))}")
        for complaint in wrong(file, does):
            print(f"  ! {complaint}")


if __name__ == "__main__":
    main()
