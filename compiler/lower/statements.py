"""Lowering of statements: structured control flow becomes edges between blocks.

`return`, `exit`, `break` and `continue` are jumps, so nothing needs flags. A call is expanded in
place: its parameters are bound to the arguments' places where that cannot be told from copying,
and to copies otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import BlockInstance
from compiler.lower import unions
from compiler.lower.base import Builder, Frame
from compiler.lower.expressions import Expressions
from compiler.lower.externs import Externs
from compiler.lower.values import (
    EndPlace,
    HeaderPlace,
    Record,
    SlicePlace,
    StackPlace,
    UnionPlace,
    Val,
    overlap,
    reads,
)
from compiler.source import Span

MAX_INLINE = 64


class Applied(Protocol):
    """What statements ask of tables, whose actions are made of statements."""

    def apply(self, table: c.Table, span: Span, after: ir.Block | None) -> ir.Apply:
        """The terminator that applies a table."""

    def action_header(self, action: c.Action) -> ir.Action:
        """An action as the program has it."""


class Expanded(Protocol):
    """What statements ask of parsers and controls, which are made of statements."""

    def run_block(self, instance: BlockInstance, frame: Frame) -> None:
        """Expand one in place."""


class Statements:
    """Lowers statements and calls."""

    tables: Applied
    blocks: Expanded

    def __init__(self, builder: Builder, expressions: Expressions, externs: Externs) -> None:
        self.builder = builder
        self.expressions = expressions
        self.externs = externs

    def statements(self, body: tuple[c.Statement, ...]) -> None:
        """Lower statements in order."""
        for each in body:
            self.statement(each)

    def statement(self, node: c.Statement) -> None:
        """Lower one statement."""
        self.builder.span = node.span
        instead = unions.expanded(node) if self.builder.indexes_unions else None
        if instead is None:
            _RULES[type(node)](self, node)
        else:
            self.statements(instead)

    def _block(self, node: c.Block) -> None:
        self.statements(node.body)

    def _declare(self, node: c.Declare) -> None:
        if node.init is not None:
            value = self.expressions.value(node.init)
            place = self.expressions.declare(node.variable)
            self.expressions.assign(place, value, node.span)
            return
        place = self.expressions.declare(node.variable)
        if self.builder.in_loop or self.builder.mode == "parser":
            self._reset(place, node.span)

    def _reset(self, place: Val, span: Span) -> None:
        """Headers are invalid where they are declared, also the second time around."""
        if isinstance(place, HeaderPlace | UnionPlace):
            self.expressions.invalidate(place, span)
        elif isinstance(place, StackPlace):
            for element in self.expressions.elements(place):
                self.expressions.invalidate(element, span)
        elif isinstance(place, Record):
            for part in place.fields.values():
                self._reset(part, span)

    def _assign(self, node: c.Assign) -> None:
        target = self.expressions.place(node.target)
        if node.compound:
            self.builder.found[id(node.target)] = _readable(target)
        value = self.expressions.value(node.value)
        self.builder.found.pop(id(node.target), None)
        self.expressions.assign(target, value, node.span)

    def _call_statement(self, node: c.CallStatement) -> None:
        if isinstance(node.call.callee, c.TableApply):
            after = ir.Block()
            self.builder.end(self.tables.apply(node.call.callee.table, node.span, after), after)
            return
        self.call(node.call)

    # Branches

    def _if(self, node: c.If) -> None:
        """A branch, unless the condition is known: then the other side is not there."""
        if self.builder.mode == "checksum":
            self._guarded(node)
            return
        if not self.expressions.effectful(node.condition):
            known = self.expressions.scalar(node.condition)
            if isinstance(known, ir.Lit):
                chosen = node.yes if known.value else node.no
                if chosen is not None:
                    self.statement(chosen)
                return
        yes, after = ir.Block(), ir.Block()
        no = ir.Block() if node.no is not None else after
        self.condition(node.condition, yes, no)
        self.builder.block = yes
        self.statement(node.yes)
        self.builder.jump(after, no)
        if node.no is not None:
            self.statement(node.no)
            self.builder.jump(after, after)

    def _guarded(self, node: c.If) -> None:
        """In checksum controls a condition becomes part of each checksum's own."""
        from compiler.lower.expressions import negate

        condition = self.expressions.scalar(node.condition)
        self.externs.guards.append(condition)
        self.statement(node.yes)
        self.externs.guards.pop()
        if node.no is not None:
            self.externs.guards.append(negate(condition))
            self.statement(node.no)
            self.externs.guards.pop()

    def condition(self, expr: c.Expr, yes: ir.Block, no: ir.Block) -> None:
        """Branch on a boolean expression; the current block is finished."""
        if isinstance(expr, c.Unary) and expr.op == "!":
            self.condition(expr.operand, no, yes)
            return
        if (
            isinstance(expr, c.Binary)
            and expr.op in ("&&", "||")
            and self.expressions.effectful(expr)
        ):
            middle = ir.Block()
            if expr.op == "&&":
                self.condition(expr.left, middle, no)
            else:
                self.condition(expr.left, yes, middle)
            self.builder.block = middle
            self.condition(expr.right, yes, no)
            return
        if (
            isinstance(expr, c.Field)
            and isinstance(expr.base, c.Call)
            and isinstance(expr.base.callee, c.TableApply)
        ):
            hit, miss = (yes, no) if expr.name == "hit" else (no, yes)
            applied = self.tables.apply(expr.base.callee.table, expr.span, None)
            applied.by_hit, applied.hit, applied.miss = True, hit, miss
            self.builder.end(applied, yes)
            return
        value = self.expressions.scalar(expr)
        if isinstance(value, ir.Lit):
            self.builder.jump(yes if value.value else no, yes)
            return
        self.builder.end(ir.Branch(value, yes, no, expr.span), yes)

    def table_result(self, expr: c.Field) -> Val:
        """`t.apply().hit` as a value."""
        return self.expressions.branchy(expr)

    def _switch(self, node: c.Switch) -> None:
        after = ir.Block()
        if node.table is not None:
            self._switch_table(node, after)
        else:
            self._switch_value(node, after)
        self.builder.block = after

    def _switch_table(self, node: c.Switch, after: ir.Block) -> None:
        """Edges by the action that ran; actions without a label go to default."""
        assert node.table is not None
        applied = self.tables.apply(node.table, node.span, after)
        table = applied.table
        starts: list[tuple[c.SwitchCase, ir.Block]] = []
        listed: set[str] = set()
        default: ir.Block | None = None
        for case in node.cases:
            start = ir.Block()
            starts.append((case, start))
            for label in case.labels:
                for action in table.actions:
                    if action.origin is label:
                        applied.by_action[action.name] = start
                        listed.add(action.name)
            if case.default:
                default = start
        for action in table.actions:
            if action.name not in listed:
                applied.by_action[action.name] = default or after
        self.builder.end(applied, after)
        for case, start in starts:
            self.builder.block = start
            self.statement(case.body)
            self.builder.jump(after, after)

    def _switch_value(self, node: c.Switch, after: ir.Block) -> None:
        """Comparisons in the order of labels, and the bodies behind them."""
        value = self.expressions.scalar(node.value)
        if not isinstance(value, ir.FieldRef | ir.ParamRef | ir.Lit):
            spilled = self.expressions.spill(value, node.span)
            assert isinstance(spilled, ir.Value)
            value = spilled
        starts = [ir.Block() for _ in node.cases]
        default: ir.Block = after
        for case, start in zip(node.cases, starts, strict=True):
            if case.default:
                default = start
            for label in case.labels:
                assert isinstance(label, c.Expr)
                test = ir.Op(t.BOOL, "==", (value, self.expressions.scalar(label)))
                following = ir.Block()
                self.builder.end(ir.Branch(test, start, following, label.span), following)
        self.builder.jump(default, after)
        for case, start in zip(node.cases, starts, strict=True):
            self.builder.block = start
            self.statement(case.body)
            self.builder.jump(after, after)

    # Jumps

    def _return(self, node: c.Return) -> None:
        frame = self.builder.frames[-1]
        if node.value is not None and frame.result is not None:
            self.expressions.assign(frame.result, self.expressions.value(node.value), node.span)
        self.builder.jump(frame.after, ir.Block())

    def _exit(self, node: c.Exit) -> None:
        for frame in reversed(self.builder.frames):
            for copy in frame.copy_out:
                copy()
        if self.builder.mode == "action":
            self.builder.emit("exit", (), node.span)
        self.builder.jump(None, ir.Block())

    def _break(self, _: c.Break) -> None:
        self.builder.jump(self.builder.loops[-1][0], ir.Block())

    def _continue(self, _: c.Continue) -> None:
        self.builder.jump(self.builder.loops[-1][1], ir.Block())

    # Loops

    def _for(self, node: c.For) -> None:
        """init; test: condition ? body, step, test : after. `continue` goes to step."""
        if self.builder.mode in ("checksum", "deparser"):
            raise self.builder.fail(
                node.span, f"a loop cannot run in a {self.builder.mode} control"
            )
        self.statements(node.init)
        test, body, step, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.builder.jump(test, test)
        self.builder.in_loop += 1
        self.condition(node.condition, body, after)
        self.builder.block = body
        self._loop_body(node.body, after, step)
        self.builder.jump(step, step)
        self.statements(node.update)
        self.builder.jump(test, after)
        self.builder.in_loop -= 1

    def _loop_body(self, body: c.Statement, after: ir.Block, step: ir.Block) -> None:
        self.builder.loops.append((after, step, len(self.builder.frames)))
        self.statement(body)
        self.builder.loops.pop()

    def _for_in(self, node: c.ForIn) -> None:
        """A range counts; a stack or list has its body once for each element."""
        if self.builder.mode in ("checksum", "deparser"):
            raise self.builder.fail(
                node.span, f"a loop cannot run in a {self.builder.mode} control"
            )
        variable = self.expressions.declare(node.variable)
        if isinstance(node.collection, c.Range):
            self._for_range(node, node.collection, variable)
            return
        collection = self.expressions.value(node.collection)
        after = ir.Block()
        from compiler.lower.values import ListValue

        assert isinstance(collection, StackPlace | ListValue)
        self.builder.in_loop += 1
        for element in self.expressions.elements(collection):
            step = ir.Block()
            self.expressions.assign(variable, element, node.span)
            self._loop_body(node.body, after, step)
            self.builder.jump(step, step)
        self.builder.in_loop -= 1
        self.builder.jump(after, after)

    def _for_range(self, node: c.ForIn, collection: c.Range, variable: Val) -> None:
        """The end is tested before the step, so that a range may end at its type's maximum."""
        low, high = self.expressions.values([collection.low, collection.high])
        assert isinstance(low, ir.Value)
        assert isinstance(high, ir.Value)
        assert isinstance(variable, ir.Value)
        if not isinstance(high, ir.Lit):
            spilled = self.expressions.spill(high, node.span)
            assert isinstance(spilled, ir.Value)
            high = spilled
        self.expressions.assign(variable, low, node.span)
        body, step, more, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        if isinstance(low, ir.Lit) and isinstance(high, ir.Lit):
            if low.value > high.value:
                return
            self.builder.jump(body, body)
        else:
            test = ir.Op(t.BOOL, "<=", (variable, high))
            self.builder.end(ir.Branch(test, body, after, node.span), body)
        self.builder.in_loop += 1
        self._loop_body(node.body, after, step)
        self.builder.jump(step, step)
        self.builder.end(
            ir.Branch(ir.Op(t.BOOL, "<", (variable, high)), more, after, node.span), more
        )
        self.expressions.assign(
            variable, ir.Op(variable.type, "+", (variable, ir.Lit(variable.type, 1))), node.span
        )
        self.builder.jump(body, after)
        self.builder.in_loop -= 1

    # Calls

    def call(self, expr: c.Call) -> Val | None:
        """Carry out a call."""
        callee = expr.callee
        if isinstance(callee, c.Builtin):
            return self._builtin(expr, callee)
        if isinstance(callee, c.ExternCall):
            return self.externs.extern_call(expr, callee)
        if isinstance(callee, c.BlockApply):
            self._apply_block(expr)
            return None
        if isinstance(callee, c.Function):
            return self._call_function(expr, callee)
        if isinstance(callee, c.Action):
            self._call_action(expr, callee)
            return None
        raise self.builder.fail(
            expr.span,
            "a table cannot be applied here",
            "apply it as a statement, or ask for .hit, .miss or .action_run",
        )

    def _builtin(self, expr: c.Call, callee: c.Builtin) -> Val | None:
        """The methods of headers and stacks."""
        assert expr.base is not None
        place = self.expressions.value(expr.base)
        if callee.name == "isValid":
            return self.expressions.valid(place, expr.span)
        name = self.builder.copy_name(place)
        if callee.name in ("push_front", "pop_front"):
            count = expr.args[0]
            assert isinstance(count, c.Const)
            assert isinstance(name, ir.Name)
            op = "push" if callee.name == "push_front" else "pop"
            self.builder.emit(op, (name, ir.Lit(t.BIT32, int(count.value))), expr.span)
        elif callee.name == "setValid":
            if name is None or isinstance(place, EndPlace):
                raise self.builder.fail(expr.span, "this header cannot be made valid here")
            self.builder.emit("add_header", (name,), expr.span)
        else:
            self.expressions.invalidate(place, expr.span)
        return None

    def _enter(self, span: Span) -> None:
        self.builder.spend(span)
        if len(self.builder.frames) > MAX_INLINE:
            raise self.builder.fail(
                span, "calls nest too deeply", "call fewer functions inside each other", "too-large"
            )

    def _call_function(self, expr: c.Call, function: c.Function) -> Val | None:
        self._enter(expr.span)
        frame = Frame(ir.Block())
        self.bind(function.params, expr.args, frame, expr.span, isolated=True)
        if not isinstance(function.returns, t.Void):
            frame.result = self.builder.temporary(function.returns, "retval")
        self._run(function.body, frame)
        return frame.result

    def _call_action(self, expr: c.Call, action: c.Action) -> None:
        """A direct call: the action's body in place."""
        self._enter(expr.span)
        if (
            self.builder.mode == "control"
            and not self.builder.in_action
            and action not in self.builder.current.called
        ):
            self.builder.current.called[action] = self.tables.action_header(action)
            self.builder.current.called[action].called_only = True
        self.builder.in_action += 1
        frame = Frame(ir.Block())
        self.bind(
            action.params,
            expr.args,
            frame,
            expr.span,
            isolated=action.top_level,
            mentions=self.mentioned(action),
        )
        self._run(action.body, frame)
        self.builder.in_action -= 1

    def mentioned(self, action: c.Action) -> set[c.Variable]:
        """The variables an action's body may touch."""
        if action not in self.builder.mentions_of:
            self.builder.mentions_of[action] = mentioned(action.body)
        return self.builder.mentions_of[action]

    def _run(self, body: c.Block, frame: Frame) -> None:
        loops, self.builder.loops = self.builder.loops, []
        self.builder.frames.append(frame)
        self.statement(body)
        self.builder.jump(frame.after, frame.after)
        self.builder.frames.pop()
        self.builder.loops = loops
        for copy in frame.copy_out:
            copy()

    def bind(
        self,
        params: tuple[c.Variable, ...],
        args: tuple[c.Expr | None, ...],
        frame: Frame,
        span: Span,
        *,
        isolated: bool,
        mentions: set[c.Variable] | None = None,
    ) -> None:
        """Bind parameters to arguments, by reference where it makes no difference."""
        places: list[Val | None] = []
        for index, (param, arg) in enumerate(zip(params, args, strict=True)):
            if arg is None:
                places.append(None)
                continue
            value = (
                self.expressions.place(arg)
                if param.direction in ("out", "inout")
                else self.expressions.value(arg)
            )
            later = any(self.expressions.effectful(a) for a in args[index + 1 :])
            if later and param.direction not in ("out", "inout"):
                value = self.expressions.spill(value, span)
            places.append(value)
        for index, (param, place) in enumerate(zip(params, places, strict=True)):
            if place is None:
                self.builder.env[param] = self.builder.temporary(param.type, param.name)
                continue
            others = [
                p
                for i, p in enumerate(places)
                if i != index
                and p is not None
                and (params[i].direction in ("out", "inout") or param.direction in ("out", "inout"))
            ]
            shared = not isolated and mentions is not None and bool(roots(args[index]) & mentions)
            self._bind_one(param, place, others, frame, span, shared=shared)

    def _bind_one(
        self,
        param: c.Variable,
        place: Val,
        others: list[Val],
        frame: Frame,
        span: Span,
        *,
        shared: bool,
    ) -> None:
        """By reference if nobody can tell, else copy-in now and copy-out on the way back."""
        own = reads(place, set())
        touched = shared or any(overlap(own, reads(o, set())) for o in others)
        if param.direction in ("out", "inout"):
            if touched or isinstance(place, SlicePlace):
                copy = self.builder.temporary(param.type, param.name)
                if param.direction == "inout":
                    self.expressions.assign(copy, _readable(place), span)
                self.builder.env[param] = copy
                frame.copy_out.append(lambda: self.expressions.assign(place, copy, span))
                return
            if param.direction == "out" and not isinstance(place, EndPlace):
                self._reset(place, span)
            self.builder.env[param] = place
            return
        complex_ = isinstance(place, ir.Op) or touched
        self.builder.env[param] = self.expressions.spill(place, span) if complex_ else place

    def _apply_block(self, expr: c.Call) -> None:
        """A control or parser applied: its body in place, `return` behind it."""
        instance = self._block_instance(expr)
        self._enter(expr.span)
        kept, self.builder.current = self.builder.current, instance
        frame = Frame(ir.Block())
        self.builder.current = kept
        self.bind_block(instance, expr, frame)
        self.builder.current = instance
        loops, self.builder.loops = self.builder.loops, []
        self.builder.frames.append(frame)
        self.blocks.run_block(instance, frame)
        self.builder.frames.pop()
        self.builder.loops = loops
        self.builder.current = kept
        for copy in frame.copy_out:
            copy()

    def bind_block(self, instance: BlockInstance, expr: c.Call, frame: Frame) -> None:
        """Bind a block's parameters; packets and the like are bound to nothing."""
        params = instance.decl.params
        for param, arg in zip(params, expr.args, strict=True):
            if isinstance(param.type, t.Extern):
                found = self._object_argument(arg)
                if found is not None:
                    instance.values[param] = found
        pairs = [
            (p, a)
            for p, a in zip(params, expr.args, strict=True)
            if not isinstance(p.type, t.Extern)
        ]
        self.bind(
            tuple(p for p, _ in pairs), tuple(a for _, a in pairs), frame, expr.span, isolated=True
        )

    def _object_argument(self, arg: c.Expr | None) -> ir.Object | None:
        """The extern object handed to a block, unless it is the packet."""
        found = self.builder.known(arg)
        return found if isinstance(found, ir.Object) else None

    def _block_instance(self, expr: c.Call) -> BlockInstance:
        found = self.builder.known(expr.base)
        if not isinstance(found, BlockInstance):
            raise self.builder.fail(expr.span, "what is applied here is not known at compile time")
        return found

    def locals(self, instance: BlockInstance) -> None:
        """Declare a block's local variables, in order with their initial values."""
        for local in instance.decl.locals:
            if isinstance(local, c.Declare):
                self.statement(local)

    # Tables


def _readable(place: Val) -> Val:
    if isinstance(place, SlicePlace):
        from compiler.lower.expressions import slice_value

        return slice_value(place.base, place.high, place.low)
    return place


def roots(expr: c.Expr | None) -> set[c.Variable]:
    """The variables an expression mentions."""
    return mentioned(expr)


def mentioned(node: object) -> set[c.Variable]:
    """All variables mentioned anywhere in a piece of the typed tree."""
    found: set[c.Variable] = set()
    actions: set[c.Action] = set()
    work = [node]
    while work:
        item = work.pop()
        if isinstance(item, c.Ref):
            found.add(item.symbol)
        elif isinstance(item, tuple | list):
            work.extend(item)
        elif isinstance(item, c.Action):
            if item not in actions:
                actions.add(item)
                work.append(item.body)
        elif isinstance(item, c.Expr | c.Statement | c.SwitchCase):
            work.extend(getattr(item, f.name) for f in fields(item))
    return found


_RULES: dict[type, Callable[..., Any]] = {
    c.Block: Statements._block,
    c.Declare: Statements._declare,
    c.Assign: Statements._assign,
    c.CallStatement: Statements._call_statement,
    c.If: Statements._if,
    c.Switch: Statements._switch,
    c.Return: Statements._return,
    c.Exit: Statements._exit,
    c.Break: Statements._break,
    c.Continue: Statements._continue,
    c.For: Statements._for,
    c.ForIn: Statements._for_in,
}
