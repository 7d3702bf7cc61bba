"""Statements, and the declarations that may stand among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler import syntax as s
from compiler.lexer import SOFT_KEYWORDS
from compiler.parser.cursor import MAX_CHAIN
from compiler.parser.expressions import Expressions

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.diagnostics import Span

_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", "&=", "|=", "^=", "|+|=", "|-|="}


class Statements(Expressions):
    """One method per kind of statement."""

    rungs = 0

    def function_or_instance(self, annotations: s.Annotations) -> s.Decl:
        """Either of the two; see `Declarations`."""
        raise NotImplementedError

    def block(self) -> s.Block:
        """`{ statements }`."""
        start = self.at
        annotations = self.annotations()
        self.expect("{")
        self.enter()
        self.scopes.append({})
        body: list[s.Statement] = []
        while self.inside_braces():
            with self.recovering():
                body.append(self.statement())
        self.scopes.pop()
        self.depth -= 1
        self.expect("}")
        return s.Block(self.since(start), tuple(body), annotations)

    def statement(self) -> s.Statement:
        """One statement or local declaration."""
        start = self.at
        kind = self.kinds[start]
        if kind == "@":
            annotations = self.annotations()
            if self.kinds[self.at] == "{":
                block = self.block()
                return s.Block(block.span, block.body, annotations)
            if self.kinds[self.at] in ("for", "if"):
                return self.statement()
            if self.kinds[self.at] == "const":
                return self.constant(annotations)
            return self.variable_or_instance(annotations)
        rule = self._STATEMENTS.get(kind)
        if rule is not None:
            return rule(self)
        if self._at_local_declaration():
            return self.variable_or_instance(())
        return self.assignment_or_call()

    def _at_local_declaration(self) -> bool:
        kind = self.kinds[self.at]
        if kind in ("bit", "int", "varbit", "bool", "string", "tuple"):
            return True
        if kind == "list" and self.kinds[self.at + 1] == "<":
            return True
        if kind == "error":
            return self.is_name(self.at + 1)
        if not self.is_name():
            return False
        following = self.kinds[self.at + 1]
        if following == "name" or following in SOFT_KEYWORDS:
            return True
        if following == "(":
            end = self._matching_or_none(self.at + 1)
            return (
                end is not None
                and self.is_name(end + 1)
                and (self.kinds[end + 2] in (";", "=", "{"))
            )
        if following in ("[", "<"):
            return self._type_then_name()
        return False

    def _type_then_name(self) -> bool:
        """Whether `H[3] x` or `T<A> x` stands here, judged by skipping brackets."""
        at = self.at + 1
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
            end = self._matching_or_none(at)
            return end is not None and self.is_name(end + 1)
        return self.is_name(at)

    def assignment_or_call(self) -> s.Statement:
        """`lvalue = e;`, `lvalue op= e;` or `f(...);`."""
        start = self.at
        kind = self.kinds[start]
        if kind == "else":
            self.fail("'else' without 'if'", "was a ';' put after the if's block?")
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
            self.fail(
                f"'{kind}' cannot be declared here",
                "move it out of the block; was a brace left open above?",
                "misplaced",
            )
        target = self._postfix(self.primary())
        op = self.kinds[self.at]
        if op == ">" and self._adjacent(">", ">="):
            self.at += 2
            op = ">>="
        elif op in _ASSIGNMENTS:
            self.at += 1
        elif isinstance(target, s.Call):
            self.expect(";", "the call")
            return s.CallStatement(self.since(start), target)
        elif op == "==":
            self.fail("'==' compares; an assignment is written '='", "write '='")
        elif isinstance(target, s.Name) and self.kinds[self.at] in ("name", "{", ";", "}"):
            self.expect(";" if op != ";" else "=", f"'{target.name}'")
        else:
            self.fail(f"expected '=' or a call, found {self._found()}")
        value = self.expression()
        if self.kinds[self.at] != ";":
            self.expect(";", "the assignment")
        self.at += 1
        return s.Assign(self.since(start), target, op, value)

    def constant(self, annotations: s.Annotations) -> s.Constant:
        """`const T x = e;`."""
        self.at += 1
        type_ = self.type()
        name, span = self.name("the constant's name")
        self.declare(name)
        self.expect("=", f"constant '{name}'")
        value = self.expression()
        self.expect(";", f"constant '{name}'")
        return s.Constant(span, name, annotations, type_, value)

    def variable_or_instance(self, annotations: s.Annotations) -> s.Statement:
        """`T x;`, `T x = e;` or `T(args) x;`."""
        start = self.at
        type_ = self.type()
        if self.kinds[self.at] == "(":
            return self.instance(type_, annotations)
        name, span = self.name("a variable name")
        if self.kinds[self.at] == "(" and self.is_name(start):
            self.fail(
                "functions are declared at the top level only",
                "move it there, or use an action",
                "misplaced",
            )
        init = self.expression() if self.accept("=") else None
        self.declare(name)
        self.expect(";", f"variable '{name}'")
        return s.Variable(span, name, annotations, type_, init)

    def instance(self, type_: s.TypeExpr, annotations: s.Annotations) -> s.Instance:
        """The rest of `T(args) x;`."""
        args = self.arguments()
        name, span = self.name("the instance's name")
        self.declare(name)
        body = None
        if self.accept("="):
            body = self._instance_body()
        self.expect(";", f"instance '{name}'")
        return s.Instance(span, name, annotations, type_, args, body)

    def _instance_body(self) -> s.Block:
        start = self.at
        self.expect("{")
        members: list[s.Statement] = []
        while self.inside_braces():
            own = self.annotations()
            members.append(self.function_or_instance(own))
        self.expect("}")
        return s.Block(self.since(start), tuple(members))

    def _if(self) -> s.Statement:
        start = self.at
        self.at += 1
        self.expect("(")
        condition = self.expression()
        if self.kinds[self.at] == "=":
            self.fail("'=' assigns; a comparison is written '=='", "write '=='")
        self.expect(")", "the condition")
        span = self.since(start)
        self.enter()
        yes = self.statement()
        self.depth -= 1
        no = None
        if self.accept("else"):
            # A ladder of `else if` is not nested in the eyes of who wrote it.
            self.rungs += 1
            if self.rungs > MAX_CHAIN:
                self.too_deep(f"more than {MAX_CHAIN} 'else' follow one another")
            try:
                no = self.statement()
            finally:
                self.rungs -= 1
        return s.If(span, condition, yes, no)

    def _switch(self) -> s.Statement:
        start = self.at
        self.at += 1
        self.expect("(")
        value = self.expression()
        self.expect(")")
        span = self.since(start)
        self.expect("{")
        cases: list[s.SwitchCase] = []
        while self.inside_braces():
            with self.recovering():
                cases.append(self._switch_case())
        self.expect("}")
        return s.Switch(span, value, tuple(cases))

    def _switch_case(self) -> s.SwitchCase:
        begin = self.at
        label: s.Expr
        if self.accept("default"):
            label = s.Default(self.since(begin), "default")
        else:
            label = self.expression()
        self.expect(":", "the label")
        where = self.since(begin)
        body = self.block() if self.kinds[self.at] in ("{", "@") else None
        if body is None and self.kinds[self.at] in ("name", "if", "return", "exit"):
            after = self.kinds[self.at + 1]
            if after not in (":", "."):
                self.fail("a case's statements stand in braces", "write 'label: { ... }'")
        return s.SwitchCase(where, label, body)

    def _return(self) -> s.Statement:
        start = self.at
        self.at += 1
        value = None if self.kinds[self.at] == ";" else self.expression()
        self.expect(";", "return")
        return s.Return(self.since(start), value)

    def _keyword(self, node: Callable[[Span], s.Statement]) -> s.Statement:
        start = self.at
        word = self.kinds[start]
        self.at += 1
        self.expect(";", word)
        return node(self.since(start))

    def _for(self) -> s.Statement:
        start = self.at
        self.at += 1
        self.expect("(")
        self.scopes.append({})
        try:
            return self._for_body(start)
        finally:
            self.scopes.pop()

    def _for_body(self, start: int) -> s.Statement:
        if self._at_for_in():
            type_ = None if self.kinds[self.at + 1] == "in" else self.type()
            name, span = self.name("the loop variable")
            self.declare(name)
            self.expect("in")
            collection = self.expression()
            if self.accept(".."):
                right = self.expression()
                collection = s.Binary(collection.span.to(right.span), "..", collection, right)
            self.expect(")")
            where = self.since(start)
            return s.ForIn(where, type_, name, span, collection, self._loop_body())
        init = self._for_statements(";")
        self.expect(";")
        condition: s.Expr = s.Bool(self.span(), True)
        if self.kinds[self.at] != ";":
            condition = self.expression()
        self.expect(";", "the loop's condition")
        update = self._for_statements(")")
        self.expect(")")
        return s.For(self.since(start), init, condition, update, self._loop_body())

    def _loop_body(self) -> s.Statement:
        self.enter()
        body = self.statement()
        self.depth -= 1
        return body

    def _at_for_in(self) -> bool:
        level = 0
        for index in range(self.at, len(self.kinds)):
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
        found: list[s.Statement] = []
        while self.kinds[self.at] != end:
            start = self.at
            if self._at_local_declaration():
                type_ = self.type()
                name, span = self.name()
                self.expect("=")
                self.declare(name)
                found.append(s.Variable(span, name, (), type_, self.expression()))
            else:
                target = self._postfix(self.primary())
                op = self.kinds[self.at]
                if op == ">" and self._adjacent(">", ">="):
                    self.at += 2
                    found.append(s.Assign(self.since(start), target, ">>=", self.expression()))
                elif op in _ASSIGNMENTS:
                    self.at += 1
                    value = self.expression()
                    found.append(s.Assign(self.since(start), target, op, value))
                elif isinstance(target, s.Call):
                    found.append(s.CallStatement(self.since(start), target))
                else:
                    self.fail(f"expected an assignment, found {self._found()}")
            if not self.accept(","):
                break
        return tuple(found)

    def _empty(self) -> s.Statement:
        self.at += 1
        return s.Empty(self.span(self.at - 1))

    def _misplaced_transition(self) -> s.Statement:
        return self.fail(
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
