"""Statements, and the declarations that may stand among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compiler import syntax as s
from compiler.lexer import SOFT_KEYWORDS
from compiler.parser.cursor import MAX_CHAIN, Cursor
from compiler.parser.expressions import Expressions
from compiler.parser.types import Types
from compiler.source import Span

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", "&=", "|=", "^=", "|+|=", "|-|="}


class Inside(Protocol):
    """What statements ask of declarations, which are made of statements."""

    def function_or_instance(self, annotations: s.Annotations) -> s.Decl:
        """A function of an instance's initialiser, or an instance there."""


class Statements:
    """One method per kind of statement."""

    declarations: Inside

    def __init__(self, cursor: Cursor, types: Types, expressions: Expressions) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.kinds = cursor.kinds
        self.texts = cursor.texts
        self.starts = cursor.starts

    rungs = 0  # of the ladder of `else if` that is being climbed

    def block(self) -> s.Block:
        """`blockStatement : annotations '{' statOrDeclaration* '}'`, in a scope of its own."""
        start = self.cursor.at
        annotations = self.types.annotations()
        self.cursor.expect("{")
        self.cursor.enter()
        self.cursor.scopes.append({})
        body: list[s.Statement] = []
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                body.append(self.statement())
        self.cursor.scopes.pop()
        self.cursor.depth -= 1
        self.cursor.expect("}")
        return s.Block(self.cursor.since(start), tuple(body), annotations)

    def statement(self) -> s.Statement:
        """`statOrDeclaration`, by its first word; those without one by looking further ahead."""
        start = self.cursor.at
        kind = self.kinds[start]
        if kind == "@":
            annotations = self.types.annotations()
            if self.kinds[self.cursor.at] == "{":
                block = self.block()
                return s.Block(block.span, block.body, annotations)
            if self.kinds[self.cursor.at] in ("for", "if"):
                return self.statement()
            if self.kinds[self.cursor.at] == "const":
                return self.constant(annotations)
            return self.variable_or_instance(annotations)
        rule = self._STATEMENTS.get(kind)
        if rule is not None:
            return rule(self)
        if self._at_local_declaration():
            return self.variable_or_instance(())
        return self.assignment_or_call()

    def _at_local_declaration(self) -> bool:
        """Whether `typeRef name` begins here, not an assignment or a call."""
        kind = self.kinds[self.cursor.at]
        if kind in ("bit", "int", "varbit", "bool", "string", "tuple"):
            return True
        if kind == "list" and self.kinds[self.cursor.at + 1] == "<":
            return True
        if kind == "error":
            return self.cursor.is_name(self.cursor.at + 1)
        if not self.cursor.is_name():
            return False
        following = self.kinds[self.cursor.at + 1]
        if following == "name" or following in SOFT_KEYWORDS:
            return True
        if following == "(":
            end = self.cursor.matching_or_none(self.cursor.at + 1)
            return (
                end is not None
                and self.cursor.is_name(end + 1)
                and (self.kinds[end + 2] in (";", "=", "{"))
            )
        if following in ("[", "<"):
            return self._type_then_name()
        return False

    def _type_then_name(self) -> bool:
        """Whether `H[3] x` or `T<A> x` stands here, judged by skipping brackets."""
        at = self.cursor.at + 1
        pairs = {"[": "]", "<": ">"}
        while self.kinds[at] in pairs:
            opening, closing = self.kinds[at], pairs[self.kinds[at]]
            level = 0
            while True:
                kind = self.kinds[at]
                if kind in (";", "{", "}", "end", "="):
                    return False
                level += (kind == opening) - (kind == closing)
                at += 1
                if level == 0:
                    break
        if self.kinds[at] == "(":
            end = self.cursor.matching_or_none(at)
            return end is not None and self.cursor.is_name(end + 1)
        return self.cursor.is_name(at)

    def assignment_or_call(self) -> s.Statement:
        """`assignmentOrMethodCall : lvalue assignmentOperator expression ';' | methodCall ';'`."""
        start = self.cursor.at
        kind = self.kinds[start]
        if kind == "else":
            self.cursor.fail("'else' without 'if'", "was a ';' put after the if's block?")
        if kind in (
            "action",
            "table",
            "state",
            "control",
            "parser",
            "struct",
            "header",
            "enum",
            "extern",
            "typedef",
            "package",
        ):
            self.cursor.fail(
                f"'{kind}' cannot be declared here",
                "move it out of the block; was a brace left open above?",
                "misplaced",
            )
        target = self.expressions.postfix(self.expressions.primary())
        op = self.kinds[self.cursor.at]
        if op == ">" and self.cursor.adjacent(">", ">="):
            self.cursor.at += 2
            op = ">>="
        elif op in _ASSIGNMENTS:
            self.cursor.at += 1
        elif isinstance(target, s.Call):
            self.cursor.expect(";", "the call")
            return s.CallStatement(self.cursor.since(start), target)
        elif op == "==":
            self.cursor.fail("'==' compares; an assignment is written '='", "write '='")
        elif isinstance(target, s.Name) and self.kinds[self.cursor.at] in ("name", "{", ";", "}"):
            self.cursor.expect(";" if op != ";" else "=", f"'{target.name}'")
        else:
            self.cursor.fail(f"expected '=' or a call, found {self.cursor.found()}")
        value = self.expressions.expression()
        if self.kinds[self.cursor.at] != ";":
            self.cursor.expect(";", "the assignment")
        self.cursor.at += 1
        return s.Assign(self.cursor.since(start), target, op, value)

    def constant(self, annotations: s.Annotations) -> s.Constant:
        """`constantDeclaration : CONST typeRef name '=' initializer ';'`."""
        self.cursor.at += 1
        type_ = self.types.type()
        name, span = self.cursor.name("the constant's name")
        self.cursor.declare(name)
        self.cursor.expect("=", f"constant '{name}'")
        value = self.expressions.expression()
        self.cursor.expect(";", f"constant '{name}'")
        return s.Constant(span, name, annotations, type_, value)

    def variable_or_instance(self, annotations: s.Annotations) -> s.Statement:
        """`typeRef name ('=' initializer)? ';'`, or `instantiation`."""
        start = self.cursor.at
        type_ = self.types.type()
        if self.kinds[self.cursor.at] == "(":
            return self.instance(type_, annotations)
        name, span = self.cursor.name("a variable name")
        if self.kinds[self.cursor.at] == "(" and self.cursor.is_name(start):
            self.cursor.fail(
                "functions are declared at the top level only",
                "move it there, or use an action",
                "misplaced",
            )
        init = self.expressions.expression() if self.cursor.accept("=") else None
        self.cursor.declare(name)
        self.cursor.expect(";", f"variable '{name}'")
        return s.Variable(span, name, annotations, type_, init)

    def instance(self, type_: s.TypeExpr, annotations: s.Annotations) -> s.Instance:
        """`typeRef '(' argumentList ')' name ('=' '{' members '}')? ';'`, after the type."""
        args = self.expressions.arguments()
        name, span = self.cursor.name("the instance's name")
        self.cursor.declare(name)
        body = None
        if self.cursor.accept("="):
            body = self._instance_body()
        self.cursor.expect(";", f"instance '{name}'")
        return s.Instance(span, name, annotations, type_, args, body)

    def _instance_body(self) -> s.Block:
        start = self.cursor.at
        self.cursor.expect("{")
        members: list[s.Statement] = []
        while self.cursor.inside_braces():
            own = self.types.annotations()
            members.append(self.declarations.function_or_instance(own))
        self.cursor.expect("}")
        return s.Block(self.cursor.since(start), tuple(members))

    def _if(self) -> s.Statement:
        """`conditionalStatement : IF '(' expression ')' statement (ELSE statement)?`."""
        start = self.cursor.at
        self.cursor.at += 1
        self.cursor.expect("(")
        condition = self.expressions.expression()
        if self.kinds[self.cursor.at] == "=":
            self.cursor.fail("'=' assigns; a comparison is written '=='", "write '=='")
        self.cursor.expect(")", "the condition")
        span = self.cursor.since(start)
        self.cursor.enter()
        yes = self.statement()
        self.cursor.depth -= 1
        no = None
        if self.cursor.accept("else"):
            # A ladder of `else if` is not nested in the eyes of who wrote it.
            self.rungs += 1
            if self.rungs > MAX_CHAIN:
                self.cursor.too_deep(f"more than {MAX_CHAIN} 'else' follow one another")
            try:
                no = self.statement()
            finally:
                self.rungs -= 1
        return s.If(span, condition, yes, no)

    def _switch(self) -> s.Statement:
        """`switchStatement : SWITCH '(' expression ')' '{' switchCase* '}'`."""
        start = self.cursor.at
        self.cursor.at += 1
        self.cursor.expect("(")
        value = self.expressions.expression()
        self.cursor.expect(")")
        span = self.cursor.since(start)
        self.cursor.expect("{")
        cases: list[s.SwitchCase] = []
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                cases.append(self._switch_case())
        self.cursor.expect("}")
        return s.Switch(span, value, tuple(cases))

    def _switch_case(self) -> s.SwitchCase:
        """`switchCase : switchLabel ':' blockStatement | switchLabel ':'`."""
        begin = self.cursor.at
        label: s.Expr
        if self.cursor.accept("default"):
            label = s.Default(self.cursor.since(begin), "default")
        else:
            label = self.expressions.expression()
        self.cursor.expect(":", "the label")
        where = self.cursor.since(begin)
        body = self.block() if self.kinds[self.cursor.at] in ("{", "@") else None
        if body is None and self.kinds[self.cursor.at] in ("name", "if", "return", "exit"):
            after = self.kinds[self.cursor.at + 1]
            if after not in (":", "."):
                self.cursor.fail("a case's statements stand in braces", "write 'label: { ... }'")
        return s.SwitchCase(where, label, body)

    def _return(self) -> s.Statement:
        """`returnStatement : RETURN expression? ';'`."""
        start = self.cursor.at
        self.cursor.at += 1
        value = None if self.kinds[self.cursor.at] == ";" else self.expressions.expression()
        self.cursor.expect(";", "return")
        return s.Return(self.cursor.since(start), value)

    def _keyword(self, node: Callable[[Span], s.Statement]) -> s.Statement:
        """`EXIT ';'`, `BREAK ';'`, `CONTINUE ';'`."""
        start = self.cursor.at
        word = self.kinds[start]
        self.cursor.at += 1
        self.cursor.expect(";", word)
        return node(self.cursor.since(start))

    def _for(self) -> s.Statement:
        """`forStatement`, whose variables are its own."""
        start = self.cursor.at
        self.cursor.at += 1
        self.cursor.expect("(")
        self.cursor.scopes.append({})
        try:
            return self._for_body(start)
        finally:
            self.cursor.scopes.pop()

    def _for_body(self, start: int) -> s.Statement:
        """`typeRef? name IN collection ')' statement | init ';' test ';' update ')' statement`."""
        if self._at_for_in():
            type_ = None if self.kinds[self.cursor.at + 1] == "in" else self.types.type()
            name, span = self.cursor.name("the loop variable")
            self.cursor.declare(name)
            self.cursor.expect("in")
            collection = self.expressions.expression()
            if self.cursor.accept(".."):
                right = self.expressions.expression()
                collection = s.Binary(collection.span.to(right.span), "..", collection, right)
            self.cursor.expect(")")
            where = self.cursor.since(start)
            return s.ForIn(where, type_, name, span, collection, self._loop_body())
        init = self._for_statements(";")
        self.cursor.expect(";")
        condition: s.Expr = s.Bool(self.cursor.span(), True)
        if self.kinds[self.cursor.at] != ";":
            condition = self.expressions.expression()
        self.cursor.expect(";", "the loop's condition")
        update = self._for_statements(")")
        self.cursor.expect(")")
        return s.For(self.cursor.since(start), init, condition, update, self._loop_body())

    def _loop_body(self) -> s.Statement:
        self.cursor.enter()
        body = self.statement()
        self.cursor.depth -= 1
        return body

    def _at_for_in(self) -> bool:
        """Whether an IN stands before the first ';'."""
        level = 0
        for index in range(self.cursor.at, len(self.kinds)):
            kind = self.kinds[index]
            if kind == "in" and level == 0:
                return True
            if kind == "(":
                level += 1
            elif kind == ")":
                level -= 1
            if kind in (";", "{", "}", "=") or level < 0:
                return False
        return False

    def _for_statements(self, end: str) -> tuple[s.Statement, ...]:
        """`forInitStatements` and `forUpdateStatements`: assignments, calls, declarations."""
        found: list[s.Statement] = []
        while self.kinds[self.cursor.at] != end:
            start = self.cursor.at
            if self._at_local_declaration():
                type_ = self.types.type()
                name, span = self.cursor.name()
                self.cursor.expect("=")
                self.cursor.declare(name)
                found.append(s.Variable(span, name, (), type_, self.expressions.expression()))
            else:
                target = self.expressions.postfix(self.expressions.primary())
                op = self.kinds[self.cursor.at]
                if op == ">" and self.cursor.adjacent(">", ">="):
                    self.cursor.at += 2
                    found.append(
                        s.Assign(
                            self.cursor.since(start), target, ">>=", self.expressions.expression()
                        )
                    )
                elif op in _ASSIGNMENTS:
                    self.cursor.at += 1
                    value = self.expressions.expression()
                    found.append(s.Assign(self.cursor.since(start), target, op, value))
                elif isinstance(target, s.Call):
                    found.append(s.CallStatement(self.cursor.since(start), target))
                else:
                    self.cursor.fail(f"expected an assignment, found {self.cursor.found()}")
            if not self.cursor.accept(","):
                break
        return tuple(found)

    def _empty(self) -> s.Statement:
        self.cursor.at += 1
        return s.Empty(self.cursor.span(self.cursor.at - 1))

    def _misplaced_transition(self) -> s.Statement:
        return self.cursor.fail(
            "'transition' can only end a parser state", "move it to the end of the state"
        )

    _STATEMENTS: dict[str, Callable[[Statements], s.Statement]] = {
        "{": block,
        "if": _if,
        "switch": _switch,
        "return": _return,
        "for": _for,
        ";": _empty,
        "exit": lambda p: p._keyword(s.Exit),
        "break": lambda p: p._keyword(s.Break),
        "continue": lambda p: p._keyword(s.Continue),
        "const": lambda p: p.constant(()),
        "transition": _misplaced_transition,
    }
