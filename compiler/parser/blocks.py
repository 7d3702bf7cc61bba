"""Parsers and controls, with the states, actions and tables inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from compiler import syntax as s
from compiler.parser.cursor import Cursor, SyntaxMistakeError
from compiler.parser.expressions import Expressions
from compiler.parser.statements import Statements
from compiler.parser.types import Types
from compiler.source import Span

_T = TypeVar("_T")


class Blocks:
    """Programmable blocks."""

    def __init__(
        self, cursor: Cursor, types: Types, expressions: Expressions, statements: Statements
    ) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.statements = statements
        self.kinds = cursor.kinds
        self.texts = cursor.texts
        self.starts = cursor.starts

    # Parsers

    def parser(self, annotations: s.Annotations) -> s.Decl:
        """`PARSER name ...`: a parser or a parser type, in a scope of its own."""
        self.cursor.at += 1
        name, span = self.cursor.name("the parser's name")
        self.cursor.declare(name, True)
        return self.cursor.scoped(lambda: self._parser(name, span, annotations))

    def _parser(self, name: str, span: Span, annotations: s.Annotations) -> s.Decl:
        """`typeParameters? parameters (';' | constructorParameters? '{' (local | state)* '}')`."""
        type_params = self.types.type_params()
        params = self.types.params()
        if self.cursor.accept(";"):
            return s.ParserType(span, name, annotations, "parser", type_params, params)
        constructor = self.types.params() if self.kinds[self.cursor.at] == "(" else ()
        self.cursor.expect("{", "the parser's parameters")
        body: list[s.Statement] = []
        states: list[s.StateDecl] = []
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                own = self.types.annotations()
                if self.kinds[self.cursor.at] == "state":
                    states.append(self.cursor.scoped(lambda own=own: self.state(own)))  # type: ignore[misc]
                elif self.kinds[self.cursor.at] == "value_set":
                    body.append(self.value_set(own))
                else:
                    body.append(self._local(own, "parser"))
        self.cursor.expect("}")
        return s.ParserDecl(
            span, name, annotations, type_params, params, constructor, tuple(body), tuple(states)
        )

    def _local(self, annotations: s.Annotations, where: str) -> s.Statement:
        """`constantDeclaration | variableDeclaration | instantiation`, of a parser or control."""
        kind = self.kinds[self.cursor.at]
        if kind == "const":
            return self.statements.constant(annotations)
        if kind in ("if", "switch", "return", "exit", "for", "transition") or (
            kind == "apply" and where == "parser"
        ):
            self.cursor.fail(
                f"'{kind}' cannot stand here",
                "statements belong inside "
                + ("'apply { }' or an action" if where == "control" else "a state"),
                "misplaced",
            )
        if not self.types.starts_type(self.cursor.at):
            self.cursor.fail(f"expected a declaration in the {where}, found {self.cursor.found()}")
        return self.statements.variable_or_instance(annotations)

    def value_set(self, annotations: s.Annotations) -> s.ValueSet:
        """`valueSetDeclaration : VALUESET '<' typeRef '>' '(' expression ')' name ';'`."""
        self.cursor.at += 1
        self.cursor.expect("<")
        type_ = self.types.type()
        self.types.close_angle()
        self.cursor.expect("(")
        size = self.expressions.expression()
        self.cursor.expect(")")
        name, span = self.cursor.name("the value set's name")
        self.cursor.declare(name)
        self.cursor.expect(";")
        return s.ValueSet(span, name, annotations, type_, size)

    def state(self, annotations: s.Annotations) -> s.StateDecl:
        """`parserState : STATE name '{' statement* transition? '}'`."""
        self.cursor.at += 1
        name, span = self.cursor.name("the state's name")
        self.cursor.expect("{")
        body: list[s.Statement] = []
        transition: s.Transition | None = None
        while self.cursor.inside_braces():
            start = self.cursor.at
            depth, scopes = self.cursor.depth, len(self.cursor.scopes)
            try:
                if self.kinds[self.cursor.at] == "transition":
                    transition = self.transition()
                    if self.kinds[self.cursor.at] != "}":
                        self.cursor.fail(
                            "nothing may follow a state's transition",
                            "move this before the transition",
                        )
                else:
                    body.append(self.statements.statement())
            except SyntaxMistakeError:
                self.cursor.depth = depth
                del self.cursor.scopes[scopes:]
                self.cursor.recover_statement(start)
                if transition is None and self._mentions_transition(start):
                    transition = s.Transition(span, "accept", (), ())
        self.cursor.expect("}")
        return s.StateDecl(span, name, annotations, tuple(body), transition)

    def _mentions_transition(self, start: int) -> bool:
        return "transition" in self.kinds[start : self.cursor.at]

    def transition(self) -> s.Transition:
        """`TRANSITION (name ';' | SELECT '(' expressionList ')' '{' selectCase* '}')`.

        `selectCase : keysetExpression ':' name ';'`
        """
        start = self.cursor.at
        self.cursor.at += 1
        if self.kinds[self.cursor.at] != "select":
            name, span = self.cursor.name("a state")
            self.cursor.expect(";", "the transition")
            return s.Transition(span, name, (), ())
        self.cursor.at += 1
        self.cursor.expect("(")
        keys = self.expressions.list_until(")")
        self.cursor.expect(")")
        where = self.cursor.since(start)
        self.cursor.expect("{")
        cases: list[s.SelectCase] = []
        while self.cursor.inside_braces():
            begin = self.cursor.at
            with self.cursor.recovering():
                keyset = self.expressions.keyset()
                self.cursor.expect(":", "the case's value")
                name, span = self.cursor.name("a state")
                self.cursor.expect(";", "the case")
                cases.append(s.SelectCase(self.cursor.since(begin), keyset, name, span))
        self.cursor.expect("}")
        self.cursor.accept(";")
        return s.Transition(where, None, keys, tuple(cases))

    # Controls

    def control(self, annotations: s.Annotations) -> s.Decl:
        """`CONTROL name ...`: a control or a control type, in a scope of its own."""
        self.cursor.at += 1
        name, span = self.cursor.name("the control's name")
        self.cursor.declare(name, True)
        return self.cursor.scoped(lambda: self._control(name, span, annotations))

    def _control(self, name: str, span: Span, annotations: s.Annotations) -> s.Decl:
        """`typeParameters? parameters (';' | constructorParameters? '{' local* APPLY block '}')`.

        `local : action | table | constantDeclaration | variableDeclaration | instantiation`
        """
        type_params = self.types.type_params()
        params = self.types.params()
        if self.cursor.accept(";"):
            return s.ParserType(span, name, annotations, "control", type_params, params)
        constructor = self.types.params() if self.kinds[self.cursor.at] == "(" else ()
        self.cursor.expect("{", "the control's parameters")
        body: list[s.Statement] = []
        apply: s.Block | None = None
        while self.cursor.inside_braces():
            start = self.cursor.at
            depth, scopes = self.cursor.depth, len(self.cursor.scopes)
            try:
                own = self.types.annotations()
                kind = self.kinds[self.cursor.at]
                if kind == "apply" and self.kinds[self.cursor.at + 1] in ("{", "@"):
                    if apply is not None:
                        self.cursor.fail("this control already has an apply block", "merge the two")
                    self.cursor.at += 1
                    apply = self.statements.block()
                elif kind == "action":
                    body.append(self.action(own))
                elif kind == "table":
                    body.append(self.table(own))
                else:
                    body.append(self._local(own, "control"))
            except SyntaxMistakeError:
                self.cursor.depth = depth
                del self.cursor.scopes[scopes:]
                if "apply" in self.kinds[start : self.cursor.at] and apply is None:
                    apply = s.Block(self.cursor.since(start), ())
                self.cursor.recover_statement(start)
        self.cursor.expect("}")
        if apply is None:
            if not self.cursor.diagnostics.error_count:
                self.cursor.diagnostics.error(
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
        """`actionDeclaration : ACTION name parameters blockStatement`."""
        self.cursor.at += 1
        name, span = self.cursor.name("the action's name")
        self.cursor.declare(name)

        def rest() -> s.ActionDecl:
            params = self.types.params()
            return s.ActionDecl(span, name, annotations, params, self.statements.block())

        return self.cursor.scoped(rest)

    def table(self, annotations: s.Annotations) -> s.TableDecl:
        """`tableDeclaration : TABLE name '{' tableProperty* '}'`.

        `tableProperty : KEY '=' '{' keyElement* '}' | ACTIONS '=' '{' actionRef* '}' |
        CONST? ENTRIES '=' '{' entry* '}' | CONST? name '=' initializer ';'`
        """
        self.cursor.at += 1
        name, span = self.cursor.name("the table's name")
        self.cursor.declare(name)
        self.cursor.expect("{")
        key: tuple[s.KeyElement, ...] | None = None
        actions: tuple[s.ActionRef, ...] | None = None
        entries: tuple[s.Entry, ...] | None = None
        const_entries = False
        properties: list[s.Property] = []
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                own = self.types.annotations()
                const = self.cursor.accept("const")
                word = self.kinds[self.cursor.at]
                if word == "key":
                    self.cursor.at += 1
                    self.cursor.expect("=")
                    key = self._braced(self._key_element)
                elif word == "actions":
                    self.cursor.at += 1
                    self.cursor.expect("=")
                    actions = self._braced(self._action_ref)
                elif word == "entries":
                    self.cursor.at += 1
                    self.cursor.expect("=")
                    entries = self._braced(self._entry)
                    const_entries = const
                else:
                    properties.append(self._property(own, const))
        self.cursor.expect("}")
        return s.TableDecl(
            span, name, annotations, key, actions, entries, const_entries, tuple(properties)
        )

    def _braced(self, rule: Callable[[], _T]) -> tuple[_T, ...]:
        """`'=' '{' rule* '}'`, as a table's key, actions and entries have it."""
        self.cursor.expect("{")
        found: list[_T] = []
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                found.append(rule())
        self.cursor.expect("}")
        self.cursor.accept(";")
        return tuple(found)

    def _key_element(self) -> s.KeyElement:
        """`keyElement : expression ':' name annotations ';'`."""
        start = self.cursor.at
        expr = self.expressions.expression()
        self.cursor.expect(":", "the key field")
        kind, span = self.cursor.name("a match kind")
        annotations = self.types.annotations()
        self.cursor.expect(";", "the match kind")
        return s.KeyElement(self.cursor.since(start), expr, s.Word(kind, span), annotations)

    def _action_ref(self) -> s.ActionRef:
        """`actionRef : annotations name ('(' arguments ')')?`, and the ';' behind it."""
        start = self.cursor.at
        annotations = self.types.annotations()
        expr = self.expressions.expression()
        if self.kinds[self.cursor.at] == ",":
            self.cursor.fail("actions in a table's list end in ';', not ','", "write ';'")
        self.cursor.expect(";", "the action")
        return s.ActionRef(self.cursor.since(start), expr, annotations)

    def _entry(self) -> s.Entry:
        """`entry : CONST? (PRIORITY '=' expression ':')? keyset ':' actionRef annotations ';'`."""
        start = self.cursor.at
        leading = self.types.annotations()
        const = self.cursor.accept("const")
        priority = None
        if self.kinds[self.cursor.at] == "priority" and self.kinds[self.cursor.at + 1] == "=":
            self.cursor.at += 2
            priority = self.expressions.expression()
            self.cursor.expect(":")
        keyset = self.expressions.keyset()
        self.cursor.expect(":", "the entry's key")
        action = self.expressions.expression()
        annotations = self.types.annotations()
        self.cursor.expect(";", "the entry")
        keys = keyset.elements if isinstance(keyset, s.TupleKeyset) else (keyset,)
        return s.Entry(
            self.cursor.since(start), keys, action, priority, const, leading + annotations
        )

    def _property(self, annotations: s.Annotations, const: bool) -> s.Property:
        """`tableProperty : annotations CONST? name '=' initializer ';'`."""
        name, span = self.cursor.name("a table property")
        self.cursor.expect("=")
        value = self.expressions.expression()
        self.cursor.expect(";", f"property '{name}'")
        return s.Property(span, name, value, const, annotations)
