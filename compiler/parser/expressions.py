"""Expressions, and the sets of values that select cases and table entries name."""

from __future__ import annotations

from compiler import syntax as s
from compiler.diagnostics import Diagnostics, Span
from compiler.lexer import SOFT_KEYWORDS
from compiler.parser.cursor import SyntaxMistakeError, TooDeepError
from compiler.parser.literals import base_of, integer, unescape
from compiler.parser.types import ADDITION, Types

_LEVELS: dict[str, int] = {
    "||": 2,
    "&&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    ">": 5,
    "<=": 5,
    ">=": 5,
    "|": 6,
    "^": 7,
    "&": 8,
    "<<": 9,
    ">>": 9,
    "+": ADDITION,
    "-": ADDITION,
    "++": ADDITION,
    "|+|": ADDITION,
    "|-|": ADDITION,
    "*": 11,
    "/": 11,
    "%": 11,
}


class Expressions(Types):
    """Precedence climbing."""

    def _expressions(self, end: str) -> tuple[s.Expr, ...]:
        found: list[s.Expr] = []
        while self.kinds[self.at] != end:
            found.append(self.expression())
            if not self.accept(","):
                break
        return tuple(found)

    def expression(self, level: int = 1) -> s.Expr:
        """Precedence climbing; level 1 is the ternary."""
        start = self.at
        self.enter()
        left = self.unary()
        kinds = self.kinds
        while True:
            op = kinds[self.at]
            if op == ">" and self._adjacent(">", ">"):
                op = ">>"
            found = _LEVELS.get(op)
            if found is None or found < level:
                break
            if op == ">>" and kinds[self.at + 2] == "=" and self._adjacent(">", ">"):
                break
            if op == "+" and kinds[self.at + 1] == ":":
                break
            self.at += 2 if op == ">>" else 1
            height = self.height
            right = self.expression(found + 1)
            self.grown(max(height, self.height))
            left = s.Binary(self.since(start), op, left, right)
        if level == 1 and kinds[self.at] == "?":
            self.at += 1
            height = self.height
            yes = self.expression()
            height = max(height, self.height)
            self.expect(":", "the first branch of '?'")
            no = self.expression()
            self.grown(max(height, self.height))
            left = s.Ternary(self.since(start), left, yes, no)
        elif level == 1 and kinds[self.at] == "&&&":
            self.at += 1
            height = self.height
            right = self.expression()
            self.grown(max(height, self.height))
            left = s.Binary(self.since(start), "&&&", left, right)
        self.depth -= 1
        return left

    def unary(self) -> s.Expr:
        """Prefix operators and casts."""
        start = self.at
        kind = self.kinds[start]
        if kind in ("!", "~", "-", "+"):
            self.at += 1
            self.enter()
            operand = self.unary()
            self.depth -= 1
            self.grown(self.height)
            return s.Unary(self.since(start), kind, operand)
        if kind == "(" and self._at_cast():
            self.at += 1
            type_ = self.type()
            self.expect(")")
            self.enter()
            operand = self.unary()
            self.depth -= 1
            self.grown(self.height)
            return s.Cast(self.since(start), type_, operand)
        return self._postfix(self.primary())

    def _at_cast(self) -> bool:
        following = self.kinds[self.at + 1]
        if following in ("bit", "int", "varbit", "bool", "tuple", "string"):
            return True
        if following == "list":
            return self.kinds[self.at + 2] == "<"
        if following == "error":
            return self.kinds[self.at + 2] == ")"
        if following == "name" or following in SOFT_KEYWORDS:
            at = self.at + 1
        elif following == ".":
            at = self.at + 2
        else:
            return False
        if not self.is_type_name(self.texts[at]):
            return False
        after = self.kinds[at + 1]
        return after in (")", "[") or (after == "<")

    def _postfix(self, base: s.Expr) -> s.Expr:
        kinds = self.kinds
        while True:
            kind = kinds[self.at]
            start_offset = base.span.start
            height = self.height
            if kind == ".":
                self.at += 1
                if not self.texts[self.at].isidentifier():
                    self.fail(f"expected a field or method name, found {self._found()}")
                span = self.span()
                name = self.texts[self.at]
                self.at += 1
                self.grown(height)
                base = s.Member(Span(start_offset, span.end), base, name, span)
            elif kind == "(":
                args = self.arguments()
                self.grown(max(height, self.height))
                base = s.Call(self._from(start_offset), base, (), args)
            elif kind == "[":
                self.at += 1
                index = self.expression()
                self.grown(max(height, self.height))
                height = self.height
                if self.accept(":"):
                    low = self.expression()
                    self.height = max(height, self.height + 1)
                    self.expect("]", "the slice")
                    base = s.Slice(self._from(start_offset), base, index, low)
                elif kinds[self.at] == "+" and kinds[self.at + 1] == ":":
                    self.at += 2
                    width = self.expression()
                    self.height = max(height, self.height + 1)
                    self.expect("]", "the slice")
                    base = s.PlusSlice(self._from(start_offset), base, index, width)
                else:
                    self.expect("]", "the index")
                    base = s.Index(self._from(start_offset), base, index)
            elif kind == "<" and isinstance(base, (s.Name, s.Member, s.TypeName)):
                type_args = self._try_type_args()
                if type_args is None:
                    self.height = height
                    return base
                args = self.arguments()
                self.grown(max(height, self.height))
                base = s.Call(self._from(start_offset), base, type_args, args)
            else:
                return base

    def _try_type_args(self) -> tuple[s.TypeExpr, ...] | None:
        start = self.at
        if start in self._not_type_args:
            return None
        depth = self.depth
        silent = _Silent(self.diagnostics)
        kept, self.diagnostics = self.diagnostics, silent
        try:
            self.at += 1
            types = self._type_list()
            if self.kinds[self.at] == "(":
                return types
        except (SyntaxMistakeError, TooDeepError):
            pass
        finally:
            self.diagnostics = kept
        self.depth = depth
        self.at = start
        self._not_type_args.add(start)
        return None

    def arguments(self) -> tuple[s.Argument, ...]:
        """`(a, x = b, _)`."""
        self.expect("(")
        found: list[s.Argument] = []
        height = self.height = 0
        while self.kinds[self.at] != ")":
            start = self.at
            name = None
            if self.is_name() and self.kinds[self.at + 1] == "=":
                name = self.texts[self.at]
                self.at += 2
            if self.kinds[self.at] == "_":
                self.at += 1
                found.append(s.Argument(self.since(start), name, None))
            elif self.kinds[self.at] == "...":
                self.at += 1
                found.append(
                    s.Argument(self.since(start), name, s.Default(self.since(start), "..."))
                )
            else:
                value = self.expression()
                height = max(height, self.height)
                found.append(s.Argument(self.since(start), name, value))
            if not self.accept(","):
                break
        self.height = height
        self.expect(")", "the arguments")
        return tuple(found)

    def number(self) -> s.Expr:
        """An integer literal."""
        span = self.span()
        text = self.texts[self.at]
        self.at += 1
        width: int | None = None
        signed = False
        for mark in ("w", "s"):
            head, sep, tail = text.partition(mark)
            if sep and head.isdecimal() and head.isascii() and tail[:1].isdigit():
                width, signed, text = int(head[:9]), mark == "s", tail
                break
        value = integer(text)
        if value is None:
            self.diagnostics.error(
                "bad-number", span, f"'{text}' is not a number", "digits must follow 0x, 0b or 0o"
            )
            value = 0
        return s.Number(span, value, width, signed, base_of(text))

    def primary(self) -> s.Expr:
        """Literals, names, parentheses, braces."""
        start = self.at
        kind = self.kinds[start]
        self.height = 0
        if kind == "name":
            self.at += 1
            return s.Name(self.span(start), self.texts[start])
        if kind == "number":
            return self.number()
        if kind in ("true", "false"):
            self.at += 1
            return s.Bool(self.span(start), kind == "true")
        if kind == "string" and self.texts[start] != "string":
            self.at += 1
            value = unescape(self.texts[start][1:-1])
            return s.String(self.since(start), value)
        if kind == "(":
            self.at += 1
            self.enter()
            inner = self.simple_keyset()
            self.depth -= 1
            self.expect(")")
            return inner
        if kind == "{":
            return self.braces()
        if kind == ".":
            self.at += 1
            name, _ = self.name()
            return s.Name(self.since(start), name, True)
        if kind == "error":
            self.at += 1
            return s.TypeName(self.since(start), s.BaseType(self.since(start), "error"))
        if kind in SOFT_KEYWORDS:
            self.at += 1
            return s.Name(self.span(start), self.texts[start])
        if kind in ("bit", "int", "bool", "tuple", "varbit", "string"):
            type_ = self.type()
            return s.TypeName(type_.span, type_)
        if kind == "...":
            self.at += 1
            return s.Default(self.since(start), "...")
        if kind in ("default", "_"):
            self.at += 1
            return s.Default(self.since(start), kind)
        return self.fail(f"expected an expression, found {self._found()}")

    def braces(self) -> s.Expr:
        """`{a, b}`, `{x = a}`, `{#}`."""
        start = self.at
        self.at += 1
        self.enter()
        if self._adjacent("#", "}") and self.starts[start] + 1 == self.starts[self.at]:
            self.at += 2
            self.depth -= 1
            return s.InvalidHeader(self.since(start))
        elements: list[s.Expr] = []
        fields: list[tuple[str, s.Expr, Span]] = []
        rest = False
        height = 0
        while self.inside_braces():
            if self.kinds[self.at] == "..." and self.kinds[self.at + 1] in ("}", ","):
                self.at += 1
                rest = True
                self.accept(",")
                if self.kinds[self.at] != "}":
                    self.fail("'...' must come last in a list", "move it to the end")
                break
            if self.is_name() and self.kinds[self.at + 1] == "=":
                name, span = self.name()
                self.at += 1
                fields.append((name, self.expression(), span))
            else:
                elements.append(self.simple_keyset())
            height = max(height, self.height)
            if not self.accept(","):
                break
        self.depth -= 1
        self.grown(height)
        if fields and elements:
            self.fail("a list mixes 'name = value' with plain values", "use one form throughout")
        self.expect("}", "the list")
        if fields:
            return s.StructExpr(self.since(start), tuple(fields), rest)
        return s.ListExpr(self.since(start), tuple(elements), rest)

    def keyset(self) -> s.Expr:
        """A select case's or entry's value: one, or several in parentheses."""
        start = self.at
        if self.kinds[self.at] == "(":
            end = self._matching(self.at)
            if self.kinds[end + 1] in (":", ")") or self._tuple_inside(self.at, end):
                self.at += 1
                elements = [self.simple_keyset()]
                while self.accept(","):
                    if self.kinds[self.at] == ")":
                        break
                    elements.append(self.simple_keyset())
                self.expect(")")
                if len(elements) == 1:
                    return elements[0]
                return s.TupleKeyset(self.since(start), tuple(elements))
        return self.simple_keyset()

    def _tuple_inside(self, start: int, end: int) -> bool:
        level = 0
        for index in range(start + 1, end):
            kind = self.kinds[index]
            if kind in ("(", "[", "{"):
                level += 1
            elif kind in (")", "]", "}"):
                level -= 1
            elif kind == "," and level == 0:
                return self.kinds[end + 1] not in ("&&&", "..")
        return False

    def simple_keyset(self) -> s.Expr:
        """A value, `a &&& b`, `a .. b`, `default` or `_`."""
        start = self.at
        kind = self.kinds[self.at]
        if kind in ("default", "_"):
            self.at += 1
            return s.Default(self.since(start), kind)
        left = self.expression()
        kind = self.kinds[self.at]
        if kind in ("&&&", ".."):
            self.at += 1
            height = self.height
            right = self.expression()
            self.grown(max(height, self.height))
            return s.Binary(self.since(start), kind, left, right)
        return left


class _Silent(Diagnostics):
    """Swallows errors while the parser tries something."""

    def __init__(self, real: Diagnostics) -> None:
        super().__init__()
        self.text = real.text

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Do nothing."""
