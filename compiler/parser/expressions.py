"""Expressions, and the sets of values that select cases and table entries name."""

from __future__ import annotations

from compiler import syntax as s
from compiler.diagnostics import Diagnostics
from compiler.lexer import SOFT_KEYWORDS
from compiler.parser.cursor import Cursor, SyntaxMistakeError, TooDeepError
from compiler.parser.literals import base_of, integer, unescape
from compiler.parser.types import ADDITION, Types
from compiler.source import Span

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


class Expressions:
    """Precedence climbing."""

    def __init__(self, cursor: Cursor, types: Types) -> None:
        self.cursor = cursor
        self.types = types
        self.kinds = cursor.kinds
        self.texts = cursor.texts
        self.starts = cursor.starts

    def list_until(self, end: str) -> tuple[s.Expr, ...]:
        """`expressionList : expression (',' expression)*`, up to a closing token."""
        found: list[s.Expr] = []
        while self.kinds[self.cursor.at] != end:
            found.append(self.expression())
            if not self.cursor.accept(","):
                break
        return tuple(found)

    def expression(self, level: int = 1) -> s.Expr:
        """`expression : unary (op expression)* ('?' expression ':' expression | '&&&' ...)?`.

        Climbs by precedence: after an operand every operator of at least this level, with what
        binds more tightly on its right. '?' and '&&&' bind least and come at level 1 only.
        """
        start = self.cursor.at
        self.cursor.enter()
        left = self.unary()
        kinds = self.kinds
        while True:
            op = kinds[self.cursor.at]
            if op == ">" and self.cursor.adjacent(">", ">"):
                op = ">>"
            found = _LEVELS.get(op)
            if found is None or found < level:
                break
            if op == ">>" and kinds[self.cursor.at + 2] == "=" and self.cursor.adjacent(">", ">"):
                break
            if op == "+" and kinds[self.cursor.at + 1] == ":":
                break
            self.cursor.at += 2 if op == ">>" else 1
            height = self.cursor.height
            right = self.expression(found + 1)
            self.cursor.grown(max(height, self.cursor.height))
            left = s.Binary(self.cursor.since(start), op, left, right)
        if level == 1 and kinds[self.cursor.at] == "?":
            self.cursor.at += 1
            height = self.cursor.height
            yes = self.expression()
            height = max(height, self.cursor.height)
            self.cursor.expect(":", "the first branch of '?'")
            no = self._otherwise()
            self.cursor.grown(max(height, self.cursor.height))
            left = s.Ternary(self.cursor.since(start), left, yes, no)
        elif level == 1 and kinds[self.cursor.at] == "&&&":
            self.cursor.at += 1
            height = self.cursor.height
            right = self.expression()
            self.cursor.grown(max(height, self.cursor.height))
            left = s.Binary(self.cursor.since(start), "&&&", left, right)
        self.cursor.depth -= 1
        return left

    def _otherwise(self) -> s.Expr:
        """What stands behind a condition's ':'."""
        begins_at = self.cursor.starts[self.cursor.at]
        found = self.expression()
        if isinstance(found, s.Ternary) and found.span.start == begins_at:
            self.cursor.diagnostics.warning(
                "brackets",
                found.span,
                "p4c reads 'a ? b : c ? d : e' from the left, as '(a ? b : c) ? d : e'",
                "put this in brackets, which mean the same to all compilers",
            )
        return found

    def unary(self) -> s.Expr:
        """`unary : ('!' | '~' | '-' | '+') unary | '(' typeRef ')' unary | postfix`."""
        start = self.cursor.at
        kind = self.kinds[start]
        if kind in ("!", "~", "-", "+"):
            self.cursor.at += 1
            self.cursor.enter()
            operand = self.unary()
            self.cursor.depth -= 1
            self.cursor.grown(self.cursor.height)
            return s.Unary(self.cursor.since(start), kind, operand)
        if kind == "(" and self._at_cast():
            self.cursor.at += 1
            type_ = self.types.type()
            self.cursor.expect(")")
            self.cursor.enter()
            operand = self.unary()
            self.cursor.depth -= 1
            self.cursor.grown(self.cursor.height)
            return s.Cast(self.cursor.since(start), type_, operand)
        return self.postfix(self.primary())

    def _at_cast(self) -> bool:
        """Whether `'(' typeRef ')' expression` begins here, not `'(' expression ')'`."""
        following = self.kinds[self.cursor.at + 1]
        if following in ("bit", "int", "varbit", "bool", "tuple", "string"):
            return True
        if following == "list":
            return self.kinds[self.cursor.at + 2] == "<"
        if following == "error":
            return self.kinds[self.cursor.at + 2] == ")"
        if following == "name" or following in SOFT_KEYWORDS:
            at = self.cursor.at + 1
        elif following == ".":
            at = self.cursor.at + 2
        else:
            return False
        if not self.cursor.is_type_name(self.texts[at]):
            return False
        after = self.kinds[at + 1]
        return after in (")", "[", "<")

    def postfix(self, base: s.Expr) -> s.Expr:
        """What follows a primary, any number of times.

        `'.' name | '[' expression ((':' | '+:') expression)? ']' |
        ('<' typeArgumentList '>')? '(' argumentList ')'`
        """
        kinds = self.kinds
        while True:
            kind = kinds[self.cursor.at]
            start_offset = base.span.start
            height = self.cursor.height
            if kind == ".":
                self.cursor.at += 1
                if not self.texts[self.cursor.at].isidentifier():
                    self.cursor.fail(
                        f"expected a field or method name, found {self.cursor.found()}"
                    )
                span = self.cursor.span()
                name = self.texts[self.cursor.at]
                self.cursor.at += 1
                self.cursor.grown(height)
                base = s.Member(Span(start_offset, span.end), base, name, span)
            elif kind == "(":
                args = self.arguments()
                self.cursor.grown(max(height, self.cursor.height))
                base = s.Call(self.cursor.reaching(start_offset), base, (), args)
            elif kind == "[":
                self.cursor.at += 1
                index = self.expression()
                self.cursor.grown(max(height, self.cursor.height))
                height = self.cursor.height
                if self.cursor.accept(":"):
                    low = self.expression()
                    self.cursor.height = max(height, self.cursor.height + 1)
                    self.cursor.expect("]", "the slice")
                    base = s.Slice(self.cursor.reaching(start_offset), base, index, low)
                elif kinds[self.cursor.at] == "+" and kinds[self.cursor.at + 1] == ":":
                    self.cursor.at += 2
                    width = self.expression()
                    self.cursor.height = max(height, self.cursor.height + 1)
                    self.cursor.expect("]", "the slice")
                    base = s.PlusSlice(self.cursor.reaching(start_offset), base, index, width)
                else:
                    self.cursor.expect("]", "the index")
                    base = s.Index(self.cursor.reaching(start_offset), base, index)
            elif kind == "<" and isinstance(base, (s.Name, s.Member, s.TypeName)):
                type_args = self._try_type_args()
                if type_args is None:
                    self.cursor.height = height
                    return base
                args = self.arguments()
                self.cursor.grown(max(height, self.cursor.height))
                base = s.Call(self.cursor.reaching(start_offset), base, type_args, args)
            else:
                return base

    def _try_type_args(self) -> tuple[s.TypeExpr, ...] | None:
        """`'<' typeArgumentList '>' '('`, or None: then the '<' is an operator."""
        start = self.cursor.at
        if start in self.cursor.not_type_args:
            return None
        depth = self.cursor.depth
        silent = _Silent(self.cursor.diagnostics)
        kept, self.cursor.diagnostics = self.cursor.diagnostics, silent
        try:
            self.cursor.at += 1
            types = self.types.type_list()
            if self.kinds[self.cursor.at] == "(":
                return types
        except (SyntaxMistakeError, TooDeepError):
            pass
        finally:
            self.cursor.diagnostics = kept
        self.cursor.depth = depth
        self.cursor.at = start
        self.cursor.not_type_args.add(start)
        return None

    def arguments(self) -> tuple[s.Argument, ...]:
        """`'(' (argument (',' argument)*)? ')'`.

        `argument : (name '=')? (expression | '_' | '...')`
        """
        self.cursor.expect("(")
        found: list[s.Argument] = []
        height = self.cursor.height = 0
        while self.kinds[self.cursor.at] != ")":
            start = self.cursor.at
            name = None
            if self.cursor.is_name() and self.kinds[self.cursor.at + 1] == "=":
                name = self.texts[self.cursor.at]
                self.cursor.at += 2
            if self.kinds[self.cursor.at] == "_":
                self.cursor.at += 1
                found.append(s.Argument(self.cursor.since(start), name, None))
            elif self.kinds[self.cursor.at] == "...":
                self.cursor.at += 1
                found.append(
                    s.Argument(
                        self.cursor.since(start), name, s.Default(self.cursor.since(start), "...")
                    )
                )
            else:
                value = self.expression()
                height = max(height, self.cursor.height)
                found.append(s.Argument(self.cursor.since(start), name, value))
            if not self.cursor.accept(","):
                break
        self.cursor.height = height
        self.cursor.expect(")", "the arguments")
        return tuple(found)

    def number(self) -> s.Expr:
        """`(width ('w' | 's'))? ('0x' | '0d' | '0o' | '0b')? digits`: w is unsigned, s signed."""
        span = self.cursor.span()
        text = self.texts[self.cursor.at]
        self.cursor.at += 1
        width: int | None = None
        signed = False
        for mark in ("w", "s"):
            head, sep, tail = text.partition(mark)
            if sep and head.isdecimal() and head.isascii() and tail[:1].isdigit():
                width, signed, text = int(head[:9]), mark == "s", tail
                break
        value = integer(text)
        if value is None:
            self.cursor.diagnostics.error(
                "bad-number", span, f"'{text}' is not a number", "digits must follow 0x, 0b or 0o"
            )
            value = 0
        return s.Number(span, value, width, signed, base_of(text))

    def primary(self) -> s.Expr:
        """What has no operator around it.

        `'.'? name | number | string | TRUE | FALSE | '(' simpleKeysetExpression ')' | braces |
        ERROR | baseType | '...' | DEFAULT | '_'`
        """
        start = self.cursor.at
        kind = self.kinds[start]
        self.cursor.height = 0
        if kind == "name":
            self.cursor.at += 1
            return s.Name(self.cursor.span(start), self.texts[start])
        if kind == "number":
            return self.number()
        if kind in ("true", "false"):
            self.cursor.at += 1
            return s.Bool(self.cursor.span(start), kind == "true")
        if kind == "string" and self.texts[start] != "string":
            self.cursor.at += 1
            value = unescape(self.texts[start][1:-1])
            return s.String(self.cursor.since(start), value)
        if kind == "(":
            self.cursor.at += 1
            self.cursor.enter()
            inner = self.simple_keyset()
            self.cursor.depth -= 1
            self.cursor.expect(")")
            return inner
        if kind == "{":
            return self.braces()
        if kind == ".":
            self.cursor.at += 1
            name, _ = self.cursor.name()
            return s.Name(self.cursor.since(start), name, True)
        if kind == "error":
            self.cursor.at += 1
            return s.TypeName(
                self.cursor.since(start), s.BaseType(self.cursor.since(start), "error")
            )
        if kind in SOFT_KEYWORDS:
            self.cursor.at += 1
            return s.Name(self.cursor.span(start), self.texts[start])
        if kind in ("bit", "int", "bool", "tuple", "varbit", "string"):
            type_ = self.types.type()
            return s.TypeName(type_.span, type_)
        if kind == "...":
            self.cursor.at += 1
            return s.Default(self.cursor.since(start), "...")
        if kind in ("default", "_"):
            self.cursor.at += 1
            return s.Default(self.cursor.since(start), kind)
        return self.cursor.fail(f"expected an expression, found {self.cursor.found()}")

    def braces(self) -> s.Expr:
        """`'{' '#' '}' | '{' (value (',' value)*)? (',' '...')? '}'`.

        `value : simpleKeysetExpression | name '=' expression`, all of one form
        """
        start = self.cursor.at
        self.cursor.at += 1
        self.cursor.enter()
        if self.cursor.adjacent("#", "}") and self.starts[start] + 1 == self.starts[self.cursor.at]:
            self.cursor.at += 2
            self.cursor.depth -= 1
            return s.InvalidHeader(self.cursor.since(start))
        elements: list[s.Expr] = []
        fields: list[tuple[str, s.Expr, Span]] = []
        rest = False
        height = 0
        while self.cursor.inside_braces():
            if self.kinds[self.cursor.at] == "..." and self.kinds[self.cursor.at + 1] in ("}", ","):
                self.cursor.at += 1
                rest = True
                self.cursor.accept(",")
                if self.kinds[self.cursor.at] != "}":
                    self.cursor.fail("'...' must come last in a list", "move it to the end")
                break
            if self.cursor.is_name() and self.kinds[self.cursor.at + 1] == "=":
                name, span = self.cursor.name()
                self.cursor.at += 1
                fields.append((name, self.expression(), span))
            else:
                elements.append(self.simple_keyset())
            height = max(height, self.cursor.height)
            if not self.cursor.accept(","):
                break
        self.cursor.depth -= 1
        self.cursor.grown(height)
        if fields and elements:
            self.cursor.fail(
                "a list mixes 'name = value' with plain values", "use one form throughout"
            )
        self.cursor.expect("}", "the list")
        if fields:
            return s.StructExpr(self.cursor.since(start), tuple(fields), rest)
        return s.ListExpr(self.cursor.since(start), tuple(elements), rest)

    def keyset(self) -> s.Expr:
        """`simpleKeysetExpression | '(' simpleKeysetExpression (',' ...)* ')'`.

        `(a)` before a ':' is one in parentheses; elsewhere a ',' inside tells.
        """
        start = self.cursor.at
        if self.kinds[self.cursor.at] == "(":
            end = self.cursor.matching(self.cursor.at)
            if self.kinds[end + 1] in (":", ")") or self._tuple_inside(self.cursor.at, end):
                self.cursor.at += 1
                elements = [self.simple_keyset()]
                while self.cursor.accept(","):
                    if self.kinds[self.cursor.at] == ")":
                        break
                    elements.append(self.simple_keyset())
                self.cursor.expect(")")
                if len(elements) == 1:
                    return elements[0]
                return s.TupleKeyset(self.cursor.since(start), tuple(elements))
        return self.simple_keyset()

    def _tuple_inside(self, start: int, end: int) -> bool:
        """Whether the brackets hold `simpleKeysetExpression (',' simpleKeysetExpression)+`."""
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
        """`simpleKeysetExpression : expression (('&&&' | '..') expression)? | DEFAULT | '_'`."""
        start = self.cursor.at
        kind = self.kinds[self.cursor.at]
        if kind in ("default", "_"):
            self.cursor.at += 1
            return s.Default(self.cursor.since(start), kind)
        left = self.expression()
        kind = self.kinds[self.cursor.at]
        if kind in ("&&&", ".."):
            self.cursor.at += 1
            height = self.cursor.height
            right = self.expression()
            self.cursor.grown(max(height, self.cursor.height))
            return s.Binary(self.cursor.since(start), kind, left, right)
        return left


class _Silent(Diagnostics):
    """Swallows errors while the parser tries something."""

    def __init__(self, real: Diagnostics) -> None:
        super().__init__()
        self.text = real.text

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Do nothing."""
