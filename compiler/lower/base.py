"""The builder all lowering shares: the block being filled, the bindings, the frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.instances import BlockInstance, Instances
from compiler.lower.storage import Storage
from compiler.lower.values import (
    ElementPlace,
    EndPlace,
    HeaderPlace,
    StackPlace,
    UnionPlace,
    Val,
)
from compiler.source import NOWHERE, Span
from params.data import Data

MAX_OPERATIONS = 50_000  # operations and calls, when all calls are expanded
MAX_STORED = 200_000  # parts of variables and of temporaries


class Frame(Data, frozen=False):
    """One inlined call: where `return` goes, and what must be copied back on the way out."""

    after: ir.Block
    result: Val | None = None
    copy_out: list[Callable[[], None]] = field(default_factory=list)


class LoweringError(Exception):
    """The program cannot be lowered further here; already reported."""


class Builder:
    """Fills blocks with operations."""

    def __init__(
        self,
        program: ir.Program,
        storage: Storage,
        instances: Instances,
        source: c.Program,
        diagnostics: Diagnostics,
    ) -> None:
        self.program = program
        self.storage = storage
        self.instances = instances
        self.source = source
        self.diagnostics = diagnostics
        self.env: dict[c.Variable, Val] = {}
        self.current: BlockInstance = None  # type: ignore[assignment]
        self.block = ir.Block()
        self.frames: list[Frame] = []
        self.loops: list[tuple[ir.Block, ir.Block, int]] = []
        self.mode = "control"
        self.pipeline = ""
        self.found: dict[int, Val] = {}
        self.in_loop = 0
        self.in_action = 0
        self.object_names: set[str] = set()
        self.span: Span | None = None
        self.indexes_unions = any(t.is_union(each) for each in source.types)
        self.mentions_of: dict[c.Action, set[c.Variable]] = {}
        self._budget = MAX_OPERATIONS
        self._room = MAX_STORED

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Report an error."""
        self.diagnostics.error(code, span, message, cure)

    def fail(
        self, span: Span, message: str, cure: str = "", code: str = "unsupported"
    ) -> LoweringError:
        """Report something BMv2 cannot do; the caller raises the result."""
        self.diagnostics.error(code, span, message, cure)
        return LoweringError()

    def spend(self, span: Span) -> None:
        """Count an operation or a call: one that makes another twice doubles what is within."""
        self._budget -= 1
        if self._budget <= 0:
            self._stop(
                span,
                "the program becomes too large when its calls are expanded: more than "
                f"{MAX_OPERATIONS} operations up to here",
                "call fewer functions inside each other",
            )

    def _stop(self, span: Span, message: str, cure: str) -> None:
        """End the run: whatever else is lowered would find no room either."""
        self.error("too-large", span, message, cure)
        self.diagnostics.check()

    def emit(self, op: str, args: tuple[ir.Arg, ...], span: Span) -> None:
        """Append an operation."""
        self.spend(span)
        self.block.ops.append(ir.Operation(op, args, span))

    def end(self, terminator: ir.Terminator, following: ir.Block) -> None:
        """Finish the current block and go on in another."""
        if self.block.end is None:
            self.block.end = terminator
        self.block = following

    def jump(self, target: ir.Block | None, following: ir.Block) -> None:
        """Finish the current block with a jump."""
        self.end(ir.Jump(target), following)

    @contextmanager
    def aside(self, mode: str) -> Iterator[ir.Block]:
        """Fill a graph of its own, and go on after it where the builder was.

        The frames around stay: an exit in an action copies their parameters out as well.
        """
        kept = self.block, self.frames, self.loops, self.in_loop, self.mode
        self.block, self.frames, self.loops = ir.Block(), [*self.frames], []
        self.in_loop, self.mode = 0, mode
        try:
            yield self.block
        finally:
            self.block, self.frames, self.loops, self.in_loop, self.mode = kept

    def temporary(self, type_: t.Type, name: str = "tmp") -> Val:
        """Fresh storage."""
        self._room -= t.parts_of(type_)
        if self._room < 0:
            self._stop(
                self.span or NOWHERE,
                f"the variables up to here have more than {MAX_STORED} parts in all",
                "use fewer or smaller structures",
            )
        return self.storage.allocate(name, type_)

    # Names

    def known(self, expr: c.Expr | None) -> object:
        """What an expression stands for here that was made at compile time; None: nothing is."""
        if isinstance(expr, c.InstanceRef):
            return self.instances.find(expr.instance, self.current)
        return self.current.values.get(expr.symbol) if isinstance(expr, c.Ref) else None

    def copy_name(self, place: Val) -> ir.Name | ir.Element | None:
        """How an operation names a whole header, union or stack."""
        if isinstance(place, HeaderPlace):
            return ir.Name("header", place.name)
        if isinstance(place, ElementPlace):
            return ir.Element(place.stack, place.index)
        if isinstance(place, UnionPlace):
            return ir.Name("header_union", place.name)
        if isinstance(place, StackPlace):
            union = t.is_union(place.type.element)
            return ir.Name("header_union_stack" if union else "header_stack", place.name)
        if isinstance(place, EndPlace):
            return ir.Name("stack", place.stack)
        return None
