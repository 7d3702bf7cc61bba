"""Typing of statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import Constant, Constructs, Context, consists_of, mark_used
from compiler.check.expressions import Expressions
from compiler.check.typing import Typing


class Statements:
    """Types statements; a block opens a scope."""

    instantiations: Constructs

    def __init__(self, context: Context, typing: Typing, expressions: Expressions) -> None:
        self.context = context
        self.typing = typing
        self.expressions = expressions

    def block(self, node: s.Block) -> c.Block:
        """A block in a scope of its own."""
        self.context.scopes.append({})
        body = self.statements(node.body)
        self.context.scopes.pop()
        return c.Block(node.span, body)

    def statements(self, nodes: tuple[s.Statement, ...]) -> tuple[c.Statement, ...]:
        """Statements in the current scope."""
        found: list[c.Statement] = []
        ended = False
        for node in nodes:
            if ended and not isinstance(node, s.Empty):
                self.context.warning(
                    "unreachable",
                    node.span,
                    "this is never reached",
                    "remove it, or what leaves the block before it",
                )
                ended = False
            statement = self.statement(node)
            if statement is not None:
                found.append(statement)
            ended = ended or isinstance(node, s.Return | s.Exit | s.Break | s.Continue)
        return tuple(found)

    def statement(self, node: s.Statement) -> c.Statement | None:
        """One statement; None for those that leave nothing behind."""
        rule = _RULES.get(type(node))
        if rule is None:
            self.context.error(
                "misplaced",
                node.span,
                "this declaration cannot stand here",
                "move it to the control, parser or top level",
            )
            return None
        return rule(self, node)  # type: ignore[no-any-return]

    def _empty(self, _: s.Empty) -> None:
        return None

    def _block(self, node: s.Block) -> c.Statement:
        return self.block(node)

    def _assign(self, node: s.Assign) -> c.Statement:
        target = self.expressions.lvalue(node.target)
        if node.op == "=":
            known = target.type is not t.ANYTHING
            value = (
                self.typing.assigned(node.value, target.type)
                if known
                else self.expressions.expr(node.value)
            )
        else:
            op = node.op[:-1]
            mark_used(target)
            value = self.expressions.operate(
                node.value, op, target, self.expressions.expr(node.value)
            )
            value = self.typing.coerce(value, target.type)
        if isinstance(t.strip(target.type), t.Extern | t.BlockType):
            self.context.error(
                "type-mismatch", node.span, f"values of type {target.type} cannot be assigned"
            )
        return c.Assign(node.span, target, value, node.op != "=")

    def _call_statement(self, node: s.CallStatement) -> c.Statement | None:
        call = self.expressions.expr(node.call)
        if isinstance(call, c.Call):
            return c.CallStatement(node.span, call)
        if isinstance(call, c.New):
            self.context.error(
                "misplaced",
                node.span,
                "a constructor call is not a statement",
                f"name the instance: {call.type}(...) x; and apply it",
            )
        return None

    def condition(self, node: s.Expr, what: str) -> c.Expr:
        """A boolean expression."""
        value = self.expressions.expr(node)
        if not isinstance(value.type, t.BoolType) and value.type is not t.ANYTHING:
            if isinstance(value.type, t.TableResult):
                self.context.error(
                    "type-mismatch",
                    node.span,
                    "apply() is not a bool by itself",
                    "write t.apply().hit or t.apply().miss",
                )
            else:
                self.typing.mismatch(value, t.BOOL, what)
        return value

    def _if(self, node: s.If) -> c.Statement:
        condition = self.condition(node.condition, "the condition of 'if'")
        yes = self._branch(node.yes)
        no = self._branch(node.no) if node.no is not None else None
        return c.If(node.span, condition, yes, no)

    def _branch(self, node: s.Statement) -> c.Statement:
        if isinstance(node, s.Variable | s.Constant):
            self.context.error(
                "misplaced",
                node.span,
                "a declaration cannot be a branch by itself",
                "put it in braces",
            )
        self.context.scopes.append({})
        statement = self.statement(node)
        self.context.scopes.pop()
        return statement if statement is not None else c.Block(node.span, ())

    def _switch(self, node: s.Switch) -> c.Statement | None:
        """12.7: on `action_run`, or on a value that can be compared."""
        if self.context.place.kind == "parser":
            self.context.error(
                "misplaced",
                node.span,
                "a parser branches by 'transition select', not 'switch'",
                "write transition select(...) { ... }",
            )
        if self.context.place.in_action:
            self.context.error(
                "misplaced",
                node.span,
                "an action cannot contain 'switch': p4c refuses that for BMv2",
                "write if ... else if ..., or put it into the control's apply",
            )
        self.context.place.in_switch = True
        value = self.expressions.expr(node.value)
        self.context.place.in_switch = False
        if isinstance(value, c.DefaultValue):
            self.context.error(
                "type-mismatch", value.span, "'switch' cannot work on '...'", "write a value"
            )
        if isinstance(value, c.Field) and value.name == "action_run":
            assert isinstance(value.base, c.Call)
            assert isinstance(value.base.callee, c.TableApply)
            return self._switch_table(node, value, value.base.callee.table)
        base = t.strip(value.type)
        if base is not t.ANYTHING and not isinstance(
            base, t.Bits | t.BoolType | t.Enum | t.SerializableEnum | t.ErrorType
        ):
            self.context.error(
                "type-mismatch",
                node.value.span,
                f"'switch' cannot work on {value.type}",
                "it works on numbers, enums and apply().action_run",
            )
        return self._switch_value(node, value)

    def _switch_table(self, node: s.Switch, value: c.Expr, table: c.Table) -> c.Statement:
        """12.7: labels are names of the table's actions, each once."""
        by_name = {ref.action.decl.name: ref.action for ref in table.actions}
        cases: list[c.SwitchCase] = []
        labels: list[c.Action | c.Expr] = []
        default = False
        seen: set[str] = set()
        for case in node.cases:
            if isinstance(case.label, s.Default):
                default = True
            elif isinstance(case.label, s.Name):
                action = by_name.get(case.label.name)
                if action is None:
                    self.context.error(
                        "unknown-name",
                        case.span,
                        f"'{case.label.name}' is not an action of table '{table.name}'",
                        self.context.similar(case.label.name, by_name),
                    )
                elif case.label.name in seen:
                    self.context.error(
                        "duplicate",
                        case.span,
                        f"label '{case.label.name}' appears twice",
                        "remove one",
                    )
                else:
                    labels.append(action)
                    self.context.lead(case.label.span, action.decl.span)
                seen.add(case.label.name)
            else:
                self.context.error("type-mismatch", case.span, "labels here are names of actions")
            if case.body is not None:
                cases.append(c.SwitchCase(tuple(labels), default, self.block(case.body)))
                labels, default = [], False
        self._check_labels(node)
        return c.Switch(node.span, table, value, tuple(cases))

    def _check_labels(self, node: s.Switch) -> None:
        for case in node.cases[:-1]:
            if isinstance(case.label, s.Default):
                self.context.error(
                    "misplaced", case.span, "'default' must be the last label", "move it to the end"
                )
        if node.cases and node.cases[-1].body is None:
            self.context.warning(
                "fall-through",
                node.cases[-1].span,
                "the last label has no body",
                "give it one: { }",
            )

    def _switch_value(self, node: s.Switch, value: c.Expr) -> c.Statement:
        """12.7: labels are constants of the value's type, each once."""
        cases: list[c.SwitchCase] = []
        labels: list[c.Action | c.Expr] = []
        default = False
        seen: set[object] = set()
        for case in node.cases:
            if isinstance(case.label, s.Default):
                default = True
            else:
                label = self.expressions.expr(case.label, value.type)
                if isinstance(label, c.Const):
                    if label.value in seen:
                        self.context.error(
                            "duplicate", case.span, "this label appears twice", "remove one"
                        )
                    seen.add(label.value)
                elif label.type is not t.ANYTHING:
                    self.context.error(
                        "not-constant", case.span, "a label must be known at compile time"
                    )
                labels.append(label)
            if case.body is not None:
                cases.append(c.SwitchCase(tuple(labels), default, self.block(case.body)))
                labels, default = [], False
        self._check_labels(node)
        return c.Switch(node.span, None, value, tuple(cases))

    def _return(self, node: s.Return) -> c.Statement:
        """10: with a value of the function's type, or none."""
        wanted = self.context.place.returns
        if self.context.place.kind == "parser" and wanted is None:
            self.context.error(
                "misplaced",
                node.span,
                "'return' cannot be used in a parser state",
                "end the state with a transition",
            )
        if node.value is None:
            if wanted is not None and not isinstance(wanted, t.Void):
                self.context.error(
                    "type-mismatch", node.span, f"this function returns {wanted}", "return a value"
                )
            return c.Return(node.span, None)
        if wanted is None or isinstance(wanted, t.Void):
            self.context.error(
                "type-mismatch", node.span, "nothing can be returned here", "write 'return;'"
            )
            self.expressions.expr(node.value)
            return c.Return(node.span, None)
        return c.Return(node.span, self.typing.assigned(node.value, wanted))

    def _exit(self, node: s.Exit) -> c.Statement:
        if self.context.place.kind != "control":
            self.context.error(
                "misplaced",
                node.span,
                f"'exit' cannot be used in a {self.context.place.kind}",
                "it belongs in controls and actions"
                if self.context.place.kind != "parser"
                else "write 'transition accept;' or 'transition reject;'",
            )
        return c.Exit(node.span)

    def _break(self, node: s.Break) -> c.Statement:
        if not self.context.place.loops:
            self.context.error(
                "misplaced", node.span, "'break' stands outside any loop", "remove it"
            )
        return c.Break(node.span)

    def _continue(self, node: s.Continue) -> c.Statement:
        if not self.context.place.loops:
            self.context.error(
                "misplaced", node.span, "'continue' stands outside any loop", "remove it"
            )
        return c.Continue(node.span)

    def _for(self, node: s.For) -> c.Statement:
        self.context.scopes.append({})
        init = self.statements(node.init)
        condition = self.condition(node.condition, "the loop's condition")
        update = self.statements(node.update)
        body = self._loop_body(node.body)
        self.context.scopes.pop()
        if isinstance(condition, c.Const) and condition.value and not _leaves(body):
            self.context.error(
                "endless-loop",
                node.span,
                "this loop never ends: its condition is always true, and nothing leaves it",
                "give it a condition that becomes false, or a 'break'",
            )
        return c.For(node.span, init, condition, update, body)

    def _loop_body(self, node: s.Statement) -> c.Statement:
        self.context.place.loops += 1
        body = self._branch(node)
        self.context.place.loops -= 1
        return body

    def _for_in(self, node: s.ForIn) -> c.Statement:
        """12.8: over a range, a list or a stack, by a variable of the elements' type."""
        self.context.scopes.append({})
        collection = self.expressions.expr(node.collection)
        element: t.Type = t.ANYTHING
        type_ = collection.type
        if isinstance(type_, t.SetType | t.Stack | t.ListType):
            element = type_.element
        elif isinstance(collection, c.Aggregate) and isinstance(type_, t.Tuple):
            element = next((e for e in type_.elements if not isinstance(e, t.InfInt)), t.BIT32)
        elif type_ is not t.ANYTHING:
            self.context.error(
                "type-mismatch",
                node.collection.span,
                f"a loop cannot run over {type_}",
                "it runs over a range a..b, a stack or a list",
            )
        type_ = t.ANYTHING if node.type is None else self.typing.resolve(node.type)
        if node.type is None:
            self.context.error(
                "missing-type",
                node.name_span,
                f"the loop's variable '{node.name}' has no type",
                f"declare it: for (bit<32> {node.name} in ...)"
                if element in (t.INT, t.ANYTHING)
                else f"declare it: for ({element} {node.name} in ...)",
            )
        variable = c.Variable(node.name, type_, "var", node.name_span)
        self.context.declare(node.name, variable, node.name_span)
        self.context.variables.append(variable)
        variable.written = variable.used = True
        if isinstance(element, t.InfInt) and isinstance(collection, c.Range):
            low = self.typing.coerce(collection.low, variable.type)
            high = self.typing.coerce(collection.high, variable.type)
            collection = c.Range(collection.span, t.SetType(variable.type), low, high)
            element = variable.type
        if isinstance(collection, c.Aggregate):
            collection = c.Aggregate(
                collection.span,
                t.ListType(variable.type),
                tuple((n, self.typing.coerce(p, variable.type)) for n, p in collection.parts),
            )
        elif element != variable.type and t.ANYTHING not in (element, variable.type):
            self.context.error(
                "type-mismatch",
                node.name_span,
                f"the elements are {element}, the variable is {variable.type}",
                f"declare it {element}",
            )
        body = self._loop_body(node.body)
        self.context.scopes.pop()
        return c.ForIn(node.span, variable, collection, body)

    # Declarations among statements

    def variable(self, node: s.Variable) -> c.Declare:
        """A local variable."""
        type_ = self.typing.resolve(node.type)
        init = None
        if node.init is not None:
            known = type_ is not t.ANYTHING
            init = (
                self.typing.assigned(node.init, type_)
                if known
                else self.expressions.expr(node.init)
            )
        if isinstance(
            t.strip(type_),
            t.InfInt | t.Void | t.StringType | t.MatchKindType | t.ListType | t.SetType,
        ) or isinstance(type_, t.Extern | t.BlockType):
            self.context.error(
                "bad-variable",
                node.span,
                f"a variable cannot have type {type_}",
                "give it a width: bit<32>"
                if isinstance(type_, t.InfInt)
                else f"to instantiate, write {type_}(...) {node.name};"
                if isinstance(type_, t.Extern | t.BlockType)
                else "use a 'const'",
            )
            type_ = t.ANYTHING
        variable = c.Variable(
            node.name, type_, "var", node.span, node.annotations, written=init is not None
        )
        self.context.declare(node.name, variable, node.span)
        self.context.variables.append(variable)
        return c.Declare(node.span, variable, init)

    def constant(self, node: s.Constant) -> None:
        """A constant: its value is put wherever it is named."""
        type_ = self.typing.resolve(node.type)
        value = self._constant_value(node.value, type_)
        reported = value.type is t.ANYTHING or (
            isinstance(value, c.Cast) and self.context.diagnostics.error_count
        )
        if not _is_constant(value) and not reported:
            self.context.error(
                "not-constant",
                node.value.span,
                f"the value of constant '{node.name}' is not known at compile time",
                "drop 'const' to make it a variable",
            )
        self.context.declare(node.name, Constant(node.name, value, node.span), node.span)

    def _constant_value(self, node: s.Expr, type_: t.Type) -> c.Expr:
        """A constant's value; one of type `int` forgets the width its number was written with."""
        if isinstance(type_, t.InfInt):
            value = self.expressions.expr(node)
            if isinstance(value, c.Const) and isinstance(value.type, t.Bits):
                return c.Const(value.span, type_, value.value, value.written)
            return self.typing.coerce(value, type_)
        return self.typing.assigned(node, type_)

    def instance(self, node: s.Instance) -> c.Instance | None:
        """An instantiation."""
        if node.body is not None:
            self.context.error(
                "unsupported",
                node.span,
                "instances with abstract methods are not supported",
                "v1model has no extern with abstract methods",
            )
            return None
        found = self.instantiations.construct(
            node.type, node.args, node.name, node.span, node.annotations
        )
        if found is not None:
            self.context.declare(node.name, found, node.span)
        return found

    def _local_constant(self, node: s.Constant) -> None:
        self.constant(node)

    def _local_instance(self, node: s.Instance) -> None:
        self.context.error(
            "misplaced",
            node.span,
            "nothing can be instantiated here",
            "instantiate it among the declarations of the control or parser",
        )
        self.instance(node)

    def _variable(self, node: s.Variable) -> c.Statement:
        return self.variable(node)


def _leaves(node: object, *, loops: int = 0) -> bool:
    """Whether a loop's body may leave the loop; what is called from it may, if it is a block."""
    if isinstance(node, tuple):
        return any(_leaves(each, loops=loops) for each in node)
    if isinstance(node, c.Return | c.Exit):
        return True
    if isinstance(node, c.Break):
        return not loops
    if isinstance(node, c.Block):
        return _leaves(node.body, loops=loops)
    if isinstance(node, c.If):
        return _leaves((node.yes, node.no), loops=loops)
    if isinstance(node, c.Switch):
        return node.table is not None or _leaves(tuple(x.body for x in node.cases), loops=loops)
    if isinstance(node, c.For | c.ForIn):
        return _leaves(node.body, loops=loops + 1)
    if isinstance(node, c.CallStatement):
        callee = node.call.callee
        if isinstance(callee, c.Action):
            return any(_exits(each) for each in callee.body.body)
        return isinstance(callee, c.BlockApply | c.TableApply)
    return False


def _exits(node: object) -> bool:
    """Whether an action's statement may end the whole control."""
    if isinstance(node, c.Return):
        return False
    if isinstance(node, c.Block):
        return any(map(_exits, node.body))
    if isinstance(node, c.If):
        return _exits(node.yes) or _exits(node.no)
    return _leaves(node, loops=1)


def _is_constant(value: c.Expr) -> bool:
    return consists_of(
        value,
        lambda part: (
            isinstance(part, c.Const | c.Invalid | c.DefaultValue) or part.type is t.ANYTHING
        ),
    )


_RULES: dict[type, Callable[..., Any]] = {
    s.Empty: Statements._empty,
    s.Block: Statements._block,
    s.Assign: Statements._assign,
    s.CallStatement: Statements._call_statement,
    s.If: Statements._if,
    s.Switch: Statements._switch,
    s.Return: Statements._return,
    s.Exit: Statements._exit,
    s.Break: Statements._break,
    s.Continue: Statements._continue,
    s.For: Statements._for,
    s.ForIn: Statements._for_in,
    s.Variable: Statements._variable,
    s.Constant: Statements._local_constant,
    s.Instance: Statements._local_instance,
}
