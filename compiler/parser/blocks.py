"""Parsers and controls, with the states, actions and tables inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from compiler import syntax as s
from compiler.parser.cursor import SyntaxMistakeError
from compiler.parser.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.diagnostics import Span

_T = TypeVar("_T")


class Blocks(Statements):
    """Programmable blocks."""

    # Parsers

    def parser(self, annotations: s.Annotations) -> s.Decl:
        """A parser or a parser type."""
        self.at += 1
        name, span = self.name("the parser's name")
        self.declare(name, True)
        return self._scoped(lambda: self._parser(name, span, annotations))

    def _parser(self, name: str, span: Span, annotations: s.Annotations) -> s.Decl:
        type_params = self.type_params()
        params = self.params()
        if self.accept(";"):
            return s.ParserType(span, name, annotations, "parser", type_params, params)
        constructor = self.params() if self.kinds[self.at] == "(" else ()
        self.expect("{", "the parser's parameters")
        body: list[s.Statement] = []
        states: list[s.StateDecl] = []
        while self.inside_braces():
            with self.recovering():
                own = self.annotations()
                if self.kinds[self.at] == "state":
                    states.append(self._scoped(lambda own=own: self.state(own)))  # type: ignore[misc]
                elif self.kinds[self.at] == "value_set":
                    body.append(self.value_set(own))
                else:
                    body.append(self._local(own, "parser"))
        self.expect("}")
        return s.ParserDecl(
            span, name, annotations, type_params, params, constructor, tuple(body), tuple(states)
        )

    def _local(self, annotations: s.Annotations, where: str) -> s.Statement:
        """A constant, variable or instance among a parser's or control's locals."""
        kind = self.kinds[self.at]
        if kind == "const":
            return self.constant(annotations)
        if kind in ("if", "switch", "return", "exit", "for", "transition") or (
            kind == "apply" and where == "parser"
        ):
            self.fail(
                f"'{kind}' cannot stand here",
                "statements belong inside "
                + ("'apply { }' or an action" if where == "control" else "a state"),
                "misplaced",
            )
        if not self._starts_type(self.at):
            self.fail(f"expected a declaration in the {where}, found {self._found()}")
        return self.variable_or_instance(annotations)

    def value_set(self, annotations: s.Annotations) -> s.ValueSet:
        """`value_set<T>(n) x;`."""
        self.at += 1
        self.expect("<")
        type_ = self.type()
        self._close_angle()
        self.expect("(")
        size = self.expression()
        self.expect(")")
        name, span = self.name("the value set's name")
        self.declare(name)
        self.expect(";")
        return s.ValueSet(span, name, annotations, type_, size)

    def state(self, annotations: s.Annotations) -> s.StateDecl:
        """`state s { ... transition ...; }`."""
        self.at += 1
        name, span = self.name("the state's name")
        self.expect("{")
        body: list[s.Statement] = []
        transition: s.Transition | None = None
        while self.inside_braces():
            start = self.at
            depth, scopes = self.depth, len(self.scopes)
            try:
                if self.kinds[self.at] == "transition":
                    transition = self.transition()
                    if self.kinds[self.at] != "}":
                        self.fail(
                            "nothing may follow a state's transition",
                            "move this before the transition",
                        )
                else:
                    body.append(self.statement())
            except SyntaxMistakeError:
                self.depth = depth
                del self.scopes[scopes:]
                self.recover_statement(start)
                if transition is None and self._mentions_transition(start):
                    transition = s.Transition(span, "accept", (), ())
        self.expect("}")
        return s.StateDecl(span, name, annotations, tuple(body), transition)

    def _mentions_transition(self, start: int) -> bool:
        return "transition" in self.kinds[start : self.at]

    def transition(self) -> s.Transition:
        """`transition s;` or `transition select(...) {...}`."""
        start = self.at
        self.at += 1
        if self.kinds[self.at] != "select":
            name, span = self.name("a state")
            self.expect(";", "the transition")
            return s.Transition(span, name, (), ())
        self.at += 1
        self.expect("(")
        keys = self._expressions(")")
        self.expect(")")
        where = self.since(start)
        self.expect("{")
        cases: list[s.SelectCase] = []
        while self.inside_braces():
            begin = self.at
            with self.recovering():
                keyset = self.keyset()
                self.expect(":", "the case's value")
                name, span = self.name("a state")
                self.expect(";", "the case")
                cases.append(s.SelectCase(self.since(begin), keyset, name, span))
        self.expect("}")
        self.accept(";")
        return s.Transition(where, None, keys, tuple(cases))

    # Controls

    def control(self, annotations: s.Annotations) -> s.Decl:
        """A control or a control type."""
        self.at += 1
        name, span = self.name("the control's name")
        self.declare(name, True)
        return self._scoped(lambda: self._control(name, span, annotations))

    def _control(self, name: str, span: Span, annotations: s.Annotations) -> s.Decl:
        type_params = self.type_params()
        params = self.params()
        if self.accept(";"):
            return s.ParserType(span, name, annotations, "control", type_params, params)
        constructor = self.params() if self.kinds[self.at] == "(" else ()
        self.expect("{", "the control's parameters")
        body: list[s.Statement] = []
        apply: s.Block | None = None
        while self.inside_braces():
            start = self.at
            depth, scopes = self.depth, len(self.scopes)
            try:
                own = self.annotations()
                kind = self.kinds[self.at]
                if kind == "apply" and self.kinds[self.at + 1] in ("{", "@"):
                    if apply is not None:
                        self.fail("this control already has an apply block", "merge the two")
                    self.at += 1
                    apply = self.block()
                elif kind == "action":
                    body.append(self.action(own))
                elif kind == "table":
                    body.append(self.table(own))
                else:
                    body.append(self._local(own, "control"))
            except SyntaxMistakeError:
                self.depth = depth
                del self.scopes[scopes:]
                if "apply" in self.kinds[start : self.at] and apply is None:
                    apply = s.Block(self.since(start), ())
                self.recover_statement(start)
        self.expect("}")
        if apply is None:
            if not self.diagnostics.error_count:
                self.diagnostics.error(
                    "missing-apply",
                    span,
                    f"control '{name}' has no apply block",
                    "add 'apply { }', even if it is empty",
                )
            apply = s.Block(span, ())
        return s.ControlDecl(
            span, name, annotations, type_params, params, constructor, tuple(body), apply
        )

    def action(self, annotations: s.Annotations) -> s.ActionDecl:
        """`action a(params) {...}`."""
        self.at += 1
        name, span = self.name("the action's name")
        self.declare(name)

        def rest() -> s.ActionDecl:
            params = self.params()
            return s.ActionDecl(span, name, annotations, params, self.block())

        return self._scoped(rest)

    def table(self, annotations: s.Annotations) -> s.TableDecl:
        """`table t {...}`."""
        self.at += 1
        name, span = self.name("the table's name")
        self.declare(name)
        self.expect("{")
        key: tuple[s.KeyElement, ...] | None = None
        actions: tuple[s.ActionRef, ...] | None = None
        entries: tuple[s.Entry, ...] | None = None
        const_entries = False
        properties: list[s.Property] = []
        while self.inside_braces():
            with self.recovering():
                own = self.annotations()
                const = self.accept("const")
                word = self.kinds[self.at]
                if word == "key":
                    self.at += 1
                    self.expect("=")
                    key = self._braced(self._key_element)
                elif word == "actions":
                    self.at += 1
                    self.expect("=")
                    actions = self._braced(self._action_ref)
                elif word == "entries":
                    self.at += 1
                    self.expect("=")
                    entries = self._braced(self._entry)
                    const_entries = const
                else:
                    properties.append(self._property(own, const))
        self.expect("}")
        return s.TableDecl(
            span, name, annotations, key, actions, entries, const_entries, tuple(properties)
        )

    def _braced(self, rule: Callable[[], _T]) -> tuple[_T, ...]:
        self.expect("{")
        found: list[_T] = []
        while self.inside_braces():
            with self.recovering():
                found.append(rule())
        self.expect("}")
        self.accept(";")
        return tuple(found)

    def _key_element(self) -> s.KeyElement:
        start = self.at
        expr = self.expression()
        self.expect(":", "the key field")
        kind, _ = self.name("a match kind")
        annotations = self.annotations()
        self.expect(";", "the match kind")
        return s.KeyElement(self.since(start), expr, kind, annotations)

    def _action_ref(self) -> s.ActionRef:
        start = self.at
        annotations = self.annotations()
        expr = self.expression()
        if self.kinds[self.at] == ",":
            self.fail("actions in a table's list end in ';', not ','", "write ';'")
        self.expect(";", "the action")
        return s.ActionRef(self.since(start), expr, annotations)

    def _entry(self) -> s.Entry:
        start = self.at
        leading = self.annotations()
        const = self.accept("const")
        priority = None
        if self.kinds[self.at] == "priority" and self.kinds[self.at + 1] == "=":
            self.at += 2
            priority = self.expression()
            self.expect(":")
        keyset = self.keyset()
        self.expect(":", "the entry's key")
        action = self.expression()
        annotations = self.annotations()
        self.expect(";", "the entry")
        keys = keyset.elements if isinstance(keyset, s.TupleKeyset) else (keyset,)
        return s.Entry(self.since(start), keys, action, priority, const, leading + annotations)

    def _property(self, annotations: s.Annotations, const: bool) -> s.Property:
        name, span = self.name("a table property")
        self.expect("=")
        value = self.expression()
        self.expect(";", f"property '{name}'")
        return s.Property(span, name, value, const, annotations)
