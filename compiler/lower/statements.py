"""Lowering of statements: structured control flow becomes edges between blocks.

`return`, `exit`, `break` and `continue` are jumps, so nothing needs flags. A call is expanded in
place: its parameters are bound to the arguments' places where that cannot be told from copying,
and to copies otherwise.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import BlockInstance
from compiler.lower import unions
from compiler.lower.base import Frame
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.diagnostics import Span

MAX_UNROLL = 1024
MAX_INLINE = 64


class Statements(Externs):
    """Lowers statements and calls."""

    def statements(self, body: tuple[c.Statement, ...]) -> None:
        """Lower statements in order."""
        for each in body:
            self.statement(each)

    def statement(self, node: c.Statement) -> None:
        """Lower one statement."""
        self.span = node.span
        instead = unions.expanded(node) if self.indexes_unions else None
        if instead is None:
            _RULES[type(node)](self, node)
        else:
            self.statements(instead)

    def _block(self, node: c.Block) -> None:
        self.statements(node.body)

    def _declare(self, node: c.Declare) -> None:
        if node.init is not None:
            value = self.value(node.init)
            place = self.declare(node.variable)
            self.assign(place, value, node.span)
            return
        place = self.declare(node.variable)
        if self.in_loop or self.mode == "parser":
            self._reset(place, node.span)

    def _reset(self, place: Val, span: Span) -> None:
        """Headers are invalid where they are declared, also the second time around."""
        if isinstance(place, HeaderPlace | UnionPlace):
            self.invalidate(place, span)
        elif isinstance(place, StackPlace):
            for element in self.elements(place):
                self.invalidate(element, span)
        elif isinstance(place, Record):
            for part in place.fields.values():
                self._reset(part, span)

    def _assign(self, node: c.Assign) -> None:
        target = self.place(node.target)
        if node.compound:
            self.found[id(node.target)] = _readable(target)
        value = self.value(node.value)
        self.found.pop(id(node.target), None)
        self.assign(target, value, node.span)

    def _call_statement(self, node: c.CallStatement) -> None:
        if isinstance(node.call.callee, c.TableApply):
            after = ir.Block()
            self.end(self.apply(node.call.callee.table, node.span, after), after)
            return
        self.call(node.call)

    # Branches

    def _if(self, node: c.If) -> None:
        if self.mode == "checksum":
            self._guarded(node)
            return
        if not self.effectful(node.condition):
            known = self.scalar(node.condition)
            if isinstance(known, ir.Lit):
                chosen = node.yes if known.value else node.no
                if chosen is not None:
                    self.statement(chosen)
                return
        yes, after = ir.Block(), ir.Block()
        no = ir.Block() if node.no is not None else after
        self.condition(node.condition, yes, no)
        self.block = yes
        self.statement(node.yes)
        self.jump(after, no)
        if node.no is not None:
            self.statement(node.no)
            self.jump(after, after)

    def _guarded(self, node: c.If) -> None:
        """In checksum controls a condition becomes part of each checksum's own."""
        from compiler.lower.expressions import negate

        condition = self.scalar(node.condition)
        self.guards.append(condition)
        self.statement(node.yes)
        self.guards.pop()
        if node.no is not None:
            self.guards.append(negate(condition))
            self.statement(node.no)
            self.guards.pop()

    def condition(self, expr: c.Expr, yes: ir.Block, no: ir.Block) -> None:
        """Branch on a boolean expression; the current block is finished."""
        if isinstance(expr, c.Unary) and expr.op == "!":
            self.condition(expr.operand, no, yes)
            return
        if isinstance(expr, c.Binary) and expr.op in ("&&", "||") and self.effectful(expr):
            middle = ir.Block()
            if expr.op == "&&":
                self.condition(expr.left, middle, no)
            else:
                self.condition(expr.left, yes, middle)
            self.block = middle
            self.condition(expr.right, yes, no)
            return
        if (
            isinstance(expr, c.Field)
            and isinstance(expr.base, c.Call)
            and isinstance(expr.base.callee, c.TableApply)
        ):
            hit, miss = (yes, no) if expr.name == "hit" else (no, yes)
            applied = self.apply(expr.base.callee.table, expr.span, None)
            applied.by_hit, applied.hit, applied.miss = True, hit, miss
            self.end(applied, yes)
            return
        value = self.scalar(expr)
        if isinstance(value, ir.Lit):
            self.jump(yes if value.value else no, yes)
            return
        self.end(ir.Branch(value, yes, no, expr.span), yes)

    def table_result(self, expr: c.Field) -> Val:
        """`t.apply().hit` as a value."""
        return self.branchy(expr)

    def _switch(self, node: c.Switch) -> None:
        after = ir.Block()
        if node.table is not None:
            self._switch_table(node, after)
        else:
            self._switch_value(node, after)
        self.block = after

    def _switch_table(self, node: c.Switch, after: ir.Block) -> None:
        assert node.table is not None
        applied = self.apply(node.table, node.span, after)
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
        self.end(applied, after)
        for case, start in starts:
            self.block = start
            self.statement(case.body)
            self.jump(after, after)

    def _switch_value(self, node: c.Switch, after: ir.Block) -> None:
        value = self.scalar(node.value)
        if not isinstance(value, ir.FieldRef | ir.ParamRef | ir.Lit):
            spilled = self.spill(value, node.span)
            assert isinstance(spilled, ir.Value)
            value = spilled
        starts = [ir.Block() for _ in node.cases]
        default: ir.Block = after
        for case, start in zip(node.cases, starts, strict=True):
            if case.default:
                default = start
            for label in case.labels:
                assert isinstance(label, c.Expr)
                test = ir.Op(t.BOOL, "==", (value, self.scalar(label)))
                following = ir.Block()
                self.end(ir.Branch(test, start, following, label.span), following)
        self.jump(default, after)
        for case, start in zip(node.cases, starts, strict=True):
            self.block = start
            self.statement(case.body)
            self.jump(after, after)

    # Jumps

    def _return(self, node: c.Return) -> None:
        frame = self.frames[-1]
        if node.value is not None and frame.result is not None:
            self.assign(frame.result, self.value(node.value), node.span)
        self.jump(frame.after, ir.Block())

    def _exit(self, node: c.Exit) -> None:
        for frame in reversed(self.frames):
            for copy in frame.copy_out:
                copy()
        if self.mode == "action":
            self.emit("exit", (), node.span)
        self.jump(None, ir.Block())

    def _break(self, _: c.Break) -> None:
        self.jump(self.loops[-1][0], ir.Block())

    def _continue(self, _: c.Continue) -> None:
        self.jump(self.loops[-1][1], ir.Block())

    # Loops

    def _for(self, node: c.For) -> None:
        if self.mode in ("checksum", "deparser"):
            raise self.fail(node.span, f"a loop cannot run in a {self.mode} control")
        self.statements(node.init)
        test, body, step, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        self.jump(test, test)
        self.in_loop += 1
        self.condition(node.condition, body, after)
        self.block = body
        self._loop_body(node.body, after, step)
        self.jump(step, step)
        self.statements(node.update)
        self.jump(test, after)
        self.in_loop -= 1

    def _loop_body(self, body: c.Statement, after: ir.Block, step: ir.Block) -> None:
        self.loops.append((after, step, len(self.frames)))
        self.statement(body)
        self.loops.pop()

    def _for_in(self, node: c.ForIn) -> None:
        if self.mode in ("checksum", "deparser"):
            raise self.fail(node.span, f"a loop cannot run in a {self.mode} control")
        variable = self.declare(node.variable)
        if isinstance(node.collection, c.Range):
            self._for_range(node, node.collection, variable)
            return
        collection = self.value(node.collection)
        after = ir.Block()
        from compiler.lower.values import ListValue

        assert isinstance(collection, StackPlace | ListValue)
        self.in_loop += 1
        for element in self.elements(collection):
            step = ir.Block()
            self.assign(variable, element, node.span)
            self._loop_body(node.body, after, step)
            self.jump(step, step)
        self.in_loop -= 1
        self.jump(after, after)

    def _for_range(self, node: c.ForIn, collection: c.Range, variable: Val) -> None:
        """The end is tested before the step, so that a range may end at its type's maximum."""
        low, high = self.values([collection.low, collection.high])
        assert isinstance(low, ir.Value)
        assert isinstance(high, ir.Value)
        assert isinstance(variable, ir.Value)
        if not isinstance(high, ir.Lit):
            spilled = self.spill(high, node.span)
            assert isinstance(spilled, ir.Value)
            high = spilled
        self.assign(variable, low, node.span)
        body, step, more, after = ir.Block(), ir.Block(), ir.Block(), ir.Block()
        if isinstance(low, ir.Lit) and isinstance(high, ir.Lit):
            if low.value > high.value:
                return
            self.jump(body, body)
        else:
            test = ir.Op(t.BOOL, "<=", (variable, high))
            self.end(ir.Branch(test, body, after, node.span), body)
        self.in_loop += 1
        self._loop_body(node.body, after, step)
        self.jump(step, step)
        self.end(ir.Branch(ir.Op(t.BOOL, "<", (variable, high)), more, after, node.span), more)
        self.assign(
            variable, ir.Op(variable.type, "+", (variable, ir.Lit(variable.type, 1))), node.span
        )
        self.jump(body, after)
        self.in_loop -= 1

    # Calls

    def call(self, expr: c.Call) -> Val | None:
        """Carry out a call."""
        callee = expr.callee
        if isinstance(callee, c.Builtin):
            return self._builtin(expr, callee)
        if isinstance(callee, c.ExternCall):
            return self.extern_call(expr, callee)
        if isinstance(callee, c.BlockApply):
            self._apply_block(expr)
            return None
        if isinstance(callee, c.Function):
            return self._call_function(expr, callee)
        if isinstance(callee, c.Action):
            self._call_action(expr, callee)
            return None
        raise self.fail(
            expr.span,
            "a table cannot be applied here",
            "apply it as a statement, or ask for .hit, .miss or .action_run",
        )

    def _builtin(self, expr: c.Call, callee: c.Builtin) -> Val | None:
        assert expr.base is not None
        place = self.value(expr.base)
        if callee.name == "isValid":
            return self.valid(place, expr.span)
        name = self.copy_name(place)
        if callee.name in ("push_front", "pop_front"):
            count = expr.args[0]
            assert isinstance(count, c.Const)
            assert isinstance(name, ir.Name)
            op = "push" if callee.name == "push_front" else "pop"
            self.emit(op, (name, ir.Lit(t.BIT32, int(count.value))), expr.span)
        elif callee.name == "setValid":
            if name is None or isinstance(place, EndPlace):
                raise self.fail(expr.span, "this header cannot be made valid here")
            self.emit("add_header", (name,), expr.span)
        else:
            self.invalidate(place, expr.span)
        return None

    def _enter(self, span: Span) -> None:
        self.spend(span)
        if len(self.frames) > MAX_INLINE:
            raise self.fail(
                span, "calls nest too deeply", "call fewer functions inside each other", "too-large"
            )

    def _call_function(self, expr: c.Call, function: c.Function) -> Val | None:
        self._enter(expr.span)
        frame = Frame(ir.Block())
        self.bind(function.params, expr.args, frame, expr.span, isolated=True)
        if not isinstance(function.returns, t.Void):
            frame.result = self.temporary(function.returns, "retval")
        self._run(function.body, frame)
        return frame.result

    def _call_action(self, expr: c.Call, action: c.Action) -> None:
        self._enter(expr.span)
        if self.mode == "control" and not self.in_action and action not in self.current.called:
            self.current.called[action] = self.action_header(action)
            self.current.called[action].called_only = True
        self.in_action += 1
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
        self.in_action -= 1

    def mentioned(self, action: c.Action) -> set[c.Variable]:
        """The variables an action's body may touch."""
        if action not in self._mentioned:
            self._mentioned[action] = mentioned(action.body)
        return self._mentioned[action]

    def _run(self, body: c.Block, frame: Frame) -> None:
        loops, self.loops = self.loops, []
        self.frames.append(frame)
        self.statement(body)
        self.jump(frame.after, frame.after)
        self.frames.pop()
        self.loops = loops
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
            value = self.place(arg) if param.direction in ("out", "inout") else self.value(arg)
            later = any(self.effectful(a) for a in args[index + 1 :])
            if later and param.direction not in ("out", "inout"):
                value = self.spill(value, span)
            places.append(value)
        for index, (param, place) in enumerate(zip(params, places, strict=True)):
            if place is None:
                self.env[param] = self.temporary(param.type, param.name)
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
        own = reads(place, set())
        touched = shared or any(overlap(own, reads(o, set())) for o in others)
        if param.direction in ("out", "inout"):
            if touched or isinstance(place, SlicePlace):
                copy = self.temporary(param.type, param.name)
                if param.direction == "inout":
                    self.assign(copy, _readable(place), span)
                self.env[param] = copy
                frame.copy_out.append(lambda: self.assign(place, copy, span))
                return
            if param.direction == "out" and not isinstance(place, EndPlace):
                self._reset(place, span)
            self.env[param] = place
            return
        complex_ = isinstance(place, ir.Op) or touched
        self.env[param] = self.spill(place, span) if complex_ else place

    def _apply_block(self, expr: c.Call) -> None:
        instance = self._block_instance(expr)
        self._enter(expr.span)
        kept, self.current = self.current, instance
        frame = Frame(ir.Block())
        self.current = kept
        self.bind_block(instance, expr, frame)
        self.current = instance
        loops, self.loops = self.loops, []
        self.frames.append(frame)
        self.run_block(instance, frame)
        self.frames.pop()
        self.loops = loops
        self.current = kept
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
        found: object = None
        if isinstance(arg, c.InstanceRef):
            found = self.instances.find(arg.instance, self.current)
        elif isinstance(arg, c.Ref):
            found = self.current.values.get(arg.symbol)
        return found if isinstance(found, ir.Object) else None

    def _block_instance(self, expr: c.Call) -> BlockInstance:
        base = expr.base
        found: object = None
        if isinstance(base, c.InstanceRef):
            found = self.instances.find(base.instance, self.current)
        elif isinstance(base, c.Ref):
            found = self.current.values.get(base.symbol)
        if not isinstance(found, BlockInstance):
            raise self.fail(expr.span, "what is applied here is not known at compile time")
        return found

    def run_block(self, instance: BlockInstance, frame: Frame) -> None:
        """Expand a control or parser in place."""
        raise NotImplementedError

    def locals(self, instance: BlockInstance) -> None:
        """Declare a block's local variables, in order with their initial values."""
        for local in instance.decl.locals:
            if isinstance(local, c.Declare):
                self.statement(local)

    # Tables

    def action_header(self, action: c.Action) -> ir.Action:
        """An action's name and place (implemented with the tables)."""
        raise NotImplementedError

    def apply(self, table: c.Table, span: Span, after: ir.Block | None) -> ir.Apply:
        """The terminator that applies a table (implemented with the tables)."""
        raise NotImplementedError


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
        elif isinstance(item, c.Expr | c.Statement | c.SwitchCase) and is_dataclass(item):
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
