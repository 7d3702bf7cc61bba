"""Warnings about legal programs that are probably not meant.

Uninitialised reads are found by walking each body once with the set of variables that have a
value by then: branches keep what both sides give, a branch that leaves drops out, loops count
as run zero times. A struct or header counts as having a value once any part of it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from compiler import core as c
from compiler import types as t
from compiler.diagnostics import Diagnostics

_READERS = {"extract", "advance"}
Assigned = set[c.Variable] | None


def lint(program: c.Program, variables: Iterable[c.Variable], diagnostics: Diagnostics) -> None:
    """Look through a checked program."""
    for variable in variables:
        if not variable.used:
            what = "given a value but never read" if variable.written else "never used"
            diagnostics.warning(
                "unused", variable.span, f"variable '{variable.name}' is {what}", "remove it"
            )
    flow = _Flow(diagnostics)
    for action in program.actions:
        flow.body(action.body, action.params, f"action '{action.name}'")
    for function in program.functions:
        flow.body(function.body, function.params, f"function '{function.name}'")
    for block in program.blocks:
        _block(block, flow, diagnostics)


def _block(block: c.Parser | c.Control, flow: _Flow, diagnostics: Diagnostics) -> None:
    for local in block.locals:
        if isinstance(local, c.Action):
            flow.body(local.body, local.params, f"action '{local.name}'")
            if not local.used:
                diagnostics.warning(
                    "unused",
                    local.decl.span,
                    f"action '{local.name}' is never used",
                    "add it to a table's actions, or remove it",
                )
        elif isinstance(local, c.Table):
            _table(local, diagnostics)
    if isinstance(block, c.Parser):
        for state in block.states.values():
            flow.statements(state.body, set())
        _loops(block, diagnostics)
    elif block.body is not None:
        flow.statements(block.body.body, set())


def _table(table: c.Table, diagnostics: Diagnostics) -> None:
    if not table.used:
        diagnostics.warning(
            "unused",
            table.decl.span,
            f"table '{table.name}' is never applied",
            f"add {table.name}.apply(); or remove it",
        )
        return
    silent = table.default is None or table.default.ref.action.name != "NoAction"
    listed = table.decl.actions or ()
    if silent or any(p.name == "default_action" for p in table.decl.properties):
        return
    if len(listed) == len(table.actions):
        return
    diagnostics.warning(
        "no-default",
        table.decl.span,
        f"table '{table.name}' has no default_action: a packet that misses goes on unchanged",
        "add 'default_action = ...;', NoAction() if that is what you want",
    )


# Parser loops


def _loops(parser: c.Parser, diagnostics: Diagnostics) -> None:
    """States that can go round without reading anything from the packet."""
    idle = {
        name: [case.state for case in state.cases] + ([state.next] if state.next else [])
        for name, state in parser.states.items()
        if not any(_reads_packet(s) for s in state.body)
    }
    reported: set[str] = set()
    for start in idle:
        if start in reported or not _reaches(start, start, idle):
            continue
        circle = [
            name for name in idle if _reaches(start, name, idle) and _reaches(name, start, idle)
        ]
        reported.update(circle)
        changes = any(parser.states[name].body for name in circle)
        report = diagnostics.warning if changes else diagnostics.error
        names = "', '".join(circle)
        report(
            "parser-loop",
            parser.states[start].decl.span,
            f"state '{names}' can repeat for ever without reading the packet"
            if len(circle) == 1
            else f"states '{names}' can repeat for ever without reading the packet",
            "extract a header in the loop, or let one of the transitions leave it",
        )


def _reaches(start: str, goal: str, edges: dict[str, list[str]]) -> bool:
    seen: set[str] = set()
    work = list(edges.get(start, ()))
    while work:
        name = work.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            work += edges.get(name, ())
    return False


def _reads_packet(node: object) -> bool:
    for call in _calls(node):
        if isinstance(call.callee, c.ExternCall) and call.callee.method.name in _READERS:
            return True
        if isinstance(call.callee, c.BlockApply):
            return True
    return False


_PARTS: dict[object, tuple[str, ...]] = {}


def _parts(node: c.Expr | c.Statement | c.SwitchCase) -> tuple[str, ...]:
    """What a node holds, its place and its type aside."""
    found = _PARTS.get(type(node))
    if found is None:
        named = (each.name for each in fields(node))
        found = _PARTS[type(node)] = tuple(name for name in named if name not in ("span", "type"))
    return found


def _calls(node: object) -> Iterator[c.Call]:
    if isinstance(node, c.Call):
        yield node
    if isinstance(node, tuple):
        for each in node:
            yield from _calls(each)
    elif isinstance(node, c.Expr | c.Statement | c.SwitchCase):
        for name in _parts(node):
            yield from _calls(getattr(node, name))


# Values before use


class _Flow:
    """Walks bodies in the order they run."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.tracked: set[c.Variable] = set()
        self.reported: set[c.Variable] = set()

    def body(self, body: c.Block, params: tuple[c.Variable, ...], what: str) -> None:
        """An action's or function's body, whose out parameters must get values."""
        outs = [p for p in params if p.direction == "out" and _is_scalar(p.type)]
        self.tracked.update(outs)
        ends: list[set[c.Variable]] = []
        self.returns = ends
        after = self.statements(body.body, set())
        if after is not None:
            ends.append(after)
        for param in outs:
            if any(param not in end for end in ends):
                self.diagnostics.warning(
                    "uninitialised",
                    param.span,
                    f"out parameter '{param.name}' may be left without a value by {what}",
                    "assign it on every path",
                )

    returns: list[set[c.Variable]]

    def statements(self, body: Iterable[c.Statement], assigned: Assigned) -> Assigned:
        """Statements in order; None once the end cannot be reached."""
        for statement in body:
            if assigned is None:
                return None
            assigned = self.statement(statement, assigned)
        return assigned

    def statement(self, node: c.Statement, assigned: set[c.Variable]) -> Assigned:  # noqa: PLR0912
        """One statement."""
        if isinstance(node, c.Declare):
            self.read(node.init, assigned)
            if _is_scalar(node.variable.type):
                self.tracked.add(node.variable)
            assigned = assigned - {node.variable}
            return assigned | {node.variable} if node.init is not None else assigned
        if isinstance(node, c.Assign):
            self.read(node.value, assigned)
            return self.write(node.target, assigned)
        if isinstance(node, c.CallStatement):
            return self.call(node.call, assigned)
        if isinstance(node, c.Block):
            return self.statements(node.body, assigned)
        if isinstance(node, c.If):
            assigned = self.condition(node.condition, assigned)
            yes = self.statement(node.yes, set(assigned))
            no = self.statement(node.no, set(assigned)) if node.no is not None else assigned
            return _join([yes, no])
        if isinstance(node, c.Switch):
            assigned = self.condition(node.value, assigned)
            ends = [self.statement(case.body, set(assigned)) for case in node.cases]
            if not any(case.default for case in node.cases):
                ends.append(assigned)
            return _join(ends)
        if isinstance(node, c.For):
            after = self.statements(node.init, assigned)
            if after is None:
                return None
            self.read(node.condition, after)
            inside = self.statement(node.body, set(after))
            if inside is not None:
                self.statements(node.update, inside)
            return after
        if isinstance(node, c.ForIn):
            self.read(node.collection, assigned)
            self.statement(node.body, assigned | {node.variable})
            return assigned
        if isinstance(node, c.Return):
            self.read(node.value, assigned)
            if hasattr(self, "returns"):
                self.returns.append(assigned)
            return None
        if isinstance(node, c.Break | c.Continue | c.Exit):
            return None
        return assigned

    def condition(self, expr: c.Expr, assigned: set[c.Variable]) -> set[c.Variable]:
        """A condition, with the calls in it."""
        for call in _calls(expr):
            assigned = self.call(call, assigned)
        self.read(expr, assigned)
        return assigned

    def write(self, target: c.Expr, assigned: set[c.Variable]) -> set[c.Variable]:
        """An assignment's target."""
        root = target
        while isinstance(root, c.Field | c.Index | c.Slice | c.StackPart):
            if isinstance(root, c.Index):
                self.read(root.index, assigned)
            root = root.base
        if isinstance(root, c.Ref):
            return assigned | {root.symbol}
        return assigned

    def call(self, call: c.Call, assigned: set[c.Variable]) -> set[c.Variable]:
        """A call: out arguments have values afterwards."""
        directions = _directions(call)
        for arg, direction in zip(call.args, directions, strict=False):
            if arg is not None and direction != "out":
                self.read(arg, assigned)
        for arg, direction in zip(call.args, directions, strict=False):
            if arg is not None and direction in ("out", "inout"):
                assigned = self.write(arg, assigned)
        return assigned

    def read(self, expr: c.Expr | None, assigned: set[c.Variable]) -> None:
        """An expression's reads."""
        if expr is None or isinstance(expr, c.Const):
            return
        if isinstance(expr, c.Ref):
            variable = expr.symbol
            is_unset = variable in self.tracked and variable not in assigned
            if is_unset and variable not in self.reported:
                self.reported.add(variable)
                self.diagnostics.warning(
                    "uninitialised",
                    expr.span,
                    f"'{variable.name}' may be read before it has a value",
                    f"give it one where it is declared: ... {variable.name} = 0;",
                )
            return
        if isinstance(expr, c.Call):
            self.call(expr, assigned)
            return
        for name in _parts(expr):
            value = getattr(expr, name)
            if isinstance(value, c.Expr):
                self.read(value, assigned)
            elif isinstance(value, tuple):
                for part in value:
                    inner = part[1] if isinstance(part, tuple) and len(part) == 2 else part
                    if isinstance(inner, c.Expr):
                        self.read(inner, assigned)


def _is_scalar(type_: t.Type) -> bool:
    return isinstance(t.underlying(type_), t.Bits | t.BoolType | t.Enum | t.ErrorType)


def _join(ends: list[Assigned]) -> Assigned:
    """What all ways that go on agree on."""
    going = [end for end in ends if end is not None]
    if not going:
        return None
    return set.intersection(*going)


def _directions(call: c.Call) -> list[str]:
    callee = call.callee
    if isinstance(callee, c.ExternCall):
        return [p.direction for p in callee.method.params]
    if isinstance(callee, c.Function | c.Action):
        return [p.direction for p in callee.params]
    if (
        isinstance(callee, c.BlockApply)
        and call.base is not None
        and isinstance(call.base.type, t.BlockType)
    ):
        return [p.direction for p in call.base.type.params]
    return ["in"] * len(call.args)
