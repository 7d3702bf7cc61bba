"""The parser: recursive descent over the token lists, one method per grammar symbol.

Recovery: a broken statement is skipped to its `;` or to the brace that closes its block, a broken
declaration to the next word that starts one, so that one run reports many mistakes. Two things in
P4's grammar need more than a token of look-ahead: `(T) e` against `(e)`, answered by remembering
which names in scope are types; and `f<T>(x)` against `f < x`, answered by trying type arguments
and coming back. Nesting is bounded, so no input can exhaust the stack, and a position where type
arguments once failed is never tried again, so none can make it slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from compiler import syntax as s
from compiler.diagnostics import Diagnostics, Span
from compiler.lexer import KEYWORDS, SOFT_KEYWORDS, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 200
MAX_CHAIN = 1000

_T = TypeVar("_T")

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
    "+": 10,
    "-": 10,
    "++": 10,
    "|+|": 10,
    "|-|": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", "&=", "|=", "^=", "|+|=", "|-|="}
_BASE_TYPES = {
    "bool",
    "error",
    "string",
    "match_kind",
    "void",
    "bit",
    "int",
    "varbit",
    "tuple",
    "list",
}
_DECL_STARTS = {
    "action",
    "const",
    "control",
    "enum",
    "error",
    "extern",
    "header",
    "header_union",
    "match_kind",
    "package",
    "parser",
    "struct",
    "typedef",
    "type",
    "state",
    "table",
    "@",
}


_TOP_STARTS = {
    "control",
    "parser",
    "header",
    "header_union",
    "struct",
    "enum",
    "extern",
    "package",
    "typedef",
}


class _SyntaxError(Exception):
    """Unwinds to the nearest recovery point; already reported."""


class Parser:
    """Parses one program."""

    def __init__(self, tokens: Tokens, diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.at = 0
        self.diagnostics = diagnostics
        self.depth = 0
        self.scopes: list[dict[str, bool]] = [{}]
        self._not_type_args: set[int] = set()
        self._last = self.kinds.index("end")

    # Helpers

    def span(self, index: int | None = None) -> Span:
        """The span of a token, the current one by default."""
        index = self.at if index is None else index
        start = self.starts[index]
        return Span(start, start + len(self.texts[index]))

    def since(self, start: int) -> Span:
        """From the token at index `start` to the one before the current."""
        last = max(start, self.at - 1)
        return Span(self.starts[start], self.starts[last] + len(self.texts[last]))

    def accept(self, kind: str) -> bool:
        """Take the current token if it is of this kind."""
        if self.kinds[self.at] == kind:
            if self.at < self._last:
                self.at += 1
            return True
        return False

    def expect(self, kind: str, context: str = "") -> None:
        """Take a token of this kind or complain."""
        if self.kinds[self.at] == kind:
            if self.at < self._last:
                self.at += 1
            return
        after = f" after {context}" if context else ""
        if kind == ";" and self.at:
            previous = self.at - 1
            end = self.starts[previous] + len(self.texts[previous])
            self.diagnostics.error(
                "missing-semicolon",
                Span(end, end + 1),
                f"expected ';' {after.strip() or f'after {self.texts[previous]!r}'}, "
                f"found {self._found()}",
                "put a ';' here",
            )
            raise _SyntaxError
        self.fail(f"expected '{kind}'{after}, found {self._found()}")

    def _found(self) -> str:
        return repr(self.texts[self.at]) if self.kinds[self.at] != "end" else "the end of the file"

    def fail(self, message: str, cure: str = "", code: str = "syntax") -> NoReturn:
        """Report a syntax error here and unwind."""
        self.diagnostics.error(code, self.span(), message, cure)
        raise _SyntaxError

    def enter(self) -> None:
        """Go one level deeper, within bounds."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("this is nested too deeply", "use a variable for part of it", "too-deep")

    def is_name(self, index: int | None = None) -> bool:
        """Whether a token can serve as an identifier."""
        kind = self.kinds[self.at if index is None else index]
        return kind == "name" or kind in SOFT_KEYWORDS

    def name(self, what: str = "a name") -> tuple[str, Span]:
        """Take an identifier."""
        kind = self.kinds[self.at]
        if kind != "name" and kind not in SOFT_KEYWORDS:
            cure = ""
            if kind in KEYWORDS:
                cure = f"'{kind}' is a word of the language; choose another name"
            self.fail(f"expected {what}, found {self._found()}", cure)
        span = self.span()
        text = self.texts[self.at]
        self.at += 1
        return text, span

    def is_type_name(self, name: str) -> bool:
        """Whether a name in scope is that of a type."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return False

    def declare(self, name: str, is_type: bool = False) -> None:
        """Remember a name, so that later uses parse as what it is."""
        self.scopes[-1][name] = is_type

    def _scoped(self, rule: Callable[[], _T]) -> _T:
        self.scopes.append({})
        try:
            return rule()
        finally:
            self.scopes.pop()

    def at_top_level(self) -> bool:
        """Whether a declaration of the top level begins here, at the start of a line."""
        return self.kinds[self.at] in _TOP_STARTS and self._column_zero()

    def recover_statement(self, start: int) -> None:
        """Skip to just after the broken statement."""
        if self.at_top_level():
            return
        if self.at == start and self.kinds[self.at] not in ("}", "end"):
            self.at += 1
        level = 0
        while True:
            kind = self.kinds[self.at]
            if kind == "end" or (kind in _TOP_STARTS and self._column_zero()):
                return
            if kind == "{":
                level += 1
            elif kind == "}":
                if level == 0:
                    return
                level -= 1
                if level == 0:
                    self.at += 1
                    return
            elif kind == ";" and level == 0:
                self.at += 1
                return
            elif (
                level == 0
                and self.at > start
                and self._begins_line()
                and kind
                in (*_DECL_STARTS, "if", "transition", "apply", "return", "exit", "switch", "else")
            ):
                return
            self.at += 1

    def _begins_line(self) -> bool:
        previous = self.at - 1
        if previous < 0:
            return True
        text = self.diagnostics.text
        if text is None:
            return False
        end = self.starts[previous] + len(self.texts[previous])
        return "\n" in text.text[end : self.starts[self.at]]

    # Program

    def program(self) -> s.Program:
        """All declarations up to the end."""
        declarations: list[s.Decl] = []
        while self.kinds[self.at] != "end":
            start = self.at
            depth, scopes = self.depth, len(self.scopes)
            try:
                if self.accept(";"):
                    continue
                declaration = self.declaration()
                if declaration is not None:
                    declarations.append(declaration)
            except _SyntaxError:
                self.depth = depth
                del self.scopes[scopes:]
                self._recover_declaration(start)
        return s.Program(tuple(declarations))

    def _recover_declaration(self, start: int) -> None:
        if self.at == start:
            self.at += 1
        level = 0
        for index in range(start, self.at):
            level += (self.kinds[index] == "{") - (self.kinds[index] == "}")
        starts = _DECL_STARTS - {
            "state",
            "table",
            "action",
            "@",
            "const",
            "error",
            "match_kind",
            "type",
        }
        while self.kinds[self.at] != "end":
            kind = self.kinds[self.at]
            if kind in starts and self._column_zero():
                return
            if kind == "{":
                level += 1
            elif kind == "}":
                level -= 1
                if level <= 0:
                    self.at += 1
                    return
            elif kind == ";" and level <= 0:
                self.at += 1
                return
            self.at += 1

    def _column_zero(self) -> bool:
        text = self.diagnostics.text
        start = self.starts[self.at]
        return text is not None and (start == 0 or text.text[start - 1] == "\n")

    def declaration(self) -> s.Decl | None:  # noqa: PLR0912 - one branch per kind
        """A top-level declaration."""
        annotations = self.annotations()
        kind = self.kinds[self.at]
        if kind == "const":
            return self.constant(annotations)
        if kind in ("struct", "header", "header_union"):
            return self.struct(annotations)
        if kind == "enum":
            return self.enum(annotations)
        if kind in ("error", "match_kind") and self.kinds[self.at + 1] == "{":
            return self.name_list(annotations)
        if kind == "typedef" or (kind == "type" and self._starts_type(self.at + 1)):
            return self.typedef(annotations)
        if kind == "extern":
            return self.extern(annotations)
        if kind == "action":
            return self.action(annotations)
        if kind == "parser":
            return self.parser(annotations)
        if kind == "control":
            return self.control(annotations)
        if kind == "package":
            return self.package(annotations)
        if kind in ("table", "state", "apply", "transition", "if", "switch", "return", "for"):
            self.fail(
                f"'{kind}' cannot stand at the top level",
                "it belongs inside a "
                + ("parser" if kind in ("state", "transition") else "control")
                + "; was a brace closed too early?",
                "misplaced",
            )
        if kind == "}":
            self.fail("this '}' closes nothing", "remove it, or find the '{' that is missing")
        if self._starts_type(self.at):
            return self.function_or_instance(annotations)
        return self.fail(f"expected a declaration, found {self._found()}")

    def _starts_type(self, index: int) -> bool:
        kind = self.kinds[index]
        return (
            kind in _BASE_TYPES
            or kind == "name"
            or kind in SOFT_KEYWORDS
            or (kind == "." and self.is_name(index + 1))
        )

    def function_or_instance(self, annotations: s.Annotations) -> s.Decl:
        """`T f(...) {...}` or `T(args) x;` at the top level."""
        returns = self.type()
        if self.kinds[self.at] == "(":
            return self.instance(returns, annotations)
        return self.function(returns, annotations)

    def function(self, returns: s.TypeExpr, annotations: s.Annotations) -> s.Function:
        """A function after its return type."""
        name, span = self.name("a function name")
        if self.kinds[self.at] in (";", "="):
            self.diagnostics.error(
                "misplaced",
                span,
                f"variable '{name}' declared outside any parser or control",
                "declare it inside a control, parser or action, or make it a 'const'",
            )
            raise _SyntaxError
        self.declare(name)

        def rest() -> s.Function:
            type_params = self.type_params()
            params = self.params()
            return s.Function(span, name, annotations, returns, type_params, params, self.block())

        return self._scoped(rest)

    # Annotations

    def annotations(self) -> s.Annotations:
        """Any number of annotations."""
        if self.kinds[self.at] != "@":
            return ()
        found: list[s.Annotation] = []
        while self.kinds[self.at] == "@":
            start = self.at
            self.at += 1
            if self.kinds[self.at] not in ("name",) and not self.texts[self.at].isidentifier():
                self.fail("expected an annotation's name after '@'")
            name = self.texts[self.at]
            self.at += 1
            if name == "pragma":
                while not self._begins_line() and self.kinds[self.at] != "end":
                    self.at += 1
                continue
            found.append(self._annotation_body(name, start))
        return tuple(found)

    _EXPRESSION_ANNOTATIONS = {
        "selector_size_semantics",
        "max_member_weight",
        "name",
        "id",
        "hidden",
        "field_list",
        "alias",
        "priority",
        "size",
        "length",
        "match",
        "optional",
        "defaultonly",
        "tableonly",
        "noWarn",
        "deprecated",
        "pkginfo",
        "atomic",
        "p4runtime_translation",
        "p4runtime_translation_mappings",
        "controller_header",
        "brief",
        "description",
        "pure",
        "noSideEffects",
        "metadata",
        "format",
        "max_group_size",
        "selector_max_group_size_annotation",
        "fixed",
        "optimize",
        "inline",
        "unroll",
        "nounroll",
        "platform_property",
    }

    def _annotation_body(self, name: str, start: int) -> s.Annotation:
        kind = self.kinds[self.at]
        if kind not in ("(", "["):
            return s.Annotation(self.since(start), name, (), (), ())
        close = ")" if kind == "(" else "]"
        first = self.at + 1
        end = self._matching(self.at)
        tokens = tuple(self.texts[first:end])
        args: tuple[s.Expr, ...] = ()
        pairs: tuple[tuple[str, s.Expr], ...] = ()
        if kind == "[" or name in self._EXPRESSION_ANNOTATIONS:
            self.at = first
            args, pairs = self._annotation_values(close)
            if self.at != end:
                self.fail(f"expected '{close}' to end the annotation, found {self._found()}")
        self.at = end
        self.expect(close)
        text = ""
        if self.diagnostics.text is not None and end > first:
            last = self.starts[end - 1] + len(self.texts[end - 1])
            text = self.diagnostics.text.text[self.starts[first] : last]
        return s.Annotation(self.since(start), name, args, pairs, tokens, kind == "[", text)

    def _annotation_values(
        self, close: str
    ) -> tuple[tuple[s.Expr, ...], tuple[tuple[str, s.Expr], ...]]:
        args: list[s.Expr] = []
        pairs: list[tuple[str, s.Expr]] = []
        while self.kinds[self.at] != close:
            if self.texts[self.at].isidentifier() and self.kinds[self.at + 1] == "=":
                key = self.texts[self.at]
                self.at += 2
                pairs.append((key, self.expression()))
            else:
                args.append(self.expression())
            if not self.accept(","):
                break
        return tuple(args), tuple(pairs)

    def _matching(self, index: int) -> int:
        """The token that closes the bracket at `index`."""
        level = 0
        opening, closing = {"(", "[", "{"}, {")", "]", "}"}
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            if kind in opening:
                level += 1
            elif kind in closing:
                level -= 1
                if level == 0:
                    return at
        return self.fail("this bracket is never closed")

    # Types

    def type(self) -> s.TypeExpr:
        """A type, with array brackets."""
        start = self.at
        self.enter()
        kind = self.kinds[self.at]
        result: s.TypeExpr
        if kind in ("bit", "int", "varbit"):
            self.at += 1
            if self.kinds[self.at] == "<":
                self.at += 1
                width = self._width()
                self._close_angle()
                result = s.SizedType(self.since(start), kind, width)
            elif kind == "int":
                result = s.BaseType(self.since(start), "int")
            elif kind == "bit":
                result = s.SizedType(self.since(start), "bit", None)
            else:
                self.fail("varbit needs a maximum width", "write varbit<N>")
        elif kind == "tuple":
            self.at += 1
            self.expect("<")
            elements = self._type_list()
            result = s.TupleType(self.since(start), elements)
        elif kind == "list" and self.kinds[self.at + 1] == "<":
            self.at += 2
            element = self.type()
            self._close_angle()
            result = s.ListType(self.since(start), element)
        elif kind in ("bool", "error", "string", "match_kind", "void", "_"):
            self.at += 1
            result = s.BaseType(self.since(start), kind)
        else:
            self.accept(".")
            name, _ = self.name("a type")
            args: tuple[s.TypeExpr, ...] = ()
            if self.kinds[self.at] == "<":
                self.at += 1
                if self.kinds[self.at] == "number":
                    self.fail(
                        f"type '{name}' takes no width",
                        "the types with a width are bit, int and varbit",
                    )
                args = self._type_list()
            result = s.NamedType(self.since(start), name, args)
        while self.kinds[self.at] == "[":
            self.at += 1
            size = self.expression()
            self.expect("]")
            result = s.StackType(self.since(start), result, size)
        self.depth -= 1
        return result

    def _width(self) -> s.Expr:
        """A width: a number, a constant's name, or an expression in parentheses."""
        if self.kinds[self.at] == "(":
            return self.primary()
        start = self.at
        if self.kinds[self.at] == "number" or self.is_name():
            return self.expression(_LEVELS["+"])
        self.at = start
        return self.fail(
            f"expected a width, found {self._found()}",
            "use a number, a constant, or an expression in parentheses",
        )

    def _type_list(self) -> tuple[s.TypeExpr, ...]:
        """Types up to the closing '>'."""
        types: list[s.TypeExpr] = []
        if self.kinds[self.at] != ">":
            types.append(self.type())
            while self.accept(","):
                types.append(self.type())
        self._close_angle()
        return tuple(types)

    def _close_angle(self) -> None:
        if self.kinds[self.at] != ">":
            self.fail(f"expected '>' to close '<', found {self._found()}")
        self.at += 1

    def type_params(self) -> tuple[str, ...]:
        """`<A, B>` in a declaration, if present."""
        if not self.accept("<"):
            return ()
        names: list[str] = []
        while True:
            name, _ = self.name("a type parameter")
            self.declare(name, True)
            names.append(name)
            if not self.accept(","):
                break
        self._close_angle()
        return tuple(names)

    def params(self) -> tuple[s.Parameter, ...]:
        """`(dir T x = e, ...)`."""
        self.expect("(")
        found: list[s.Parameter] = []
        while self.kinds[self.at] != ")":
            annotations = self.annotations()
            direction = ""
            if self.kinds[self.at] in ("in", "out", "inout"):
                direction = self.kinds[self.at]
                self.at += 1
            type_ = self.type()
            name, span = self.name("a parameter name")
            default = self.expression() if self.accept("=") else None
            self.declare(name)
            found.append(s.Parameter(span, name, annotations, direction, type_, default))
            if not self.accept(","):
                break
        self.expect(")", "the parameters")
        return tuple(found)

    # Type declarations

    def struct(self, annotations: s.Annotations) -> s.StructDecl:
        """`struct`, `header`, `header_union`."""
        kind = self.kinds[self.at]
        self.at += 1
        name, span = self.name(f"the {kind}'s name")
        self.declare(name, True)

        def rest() -> s.StructDecl:
            type_params = self.type_params()
            self.expect("{")
            fields: list[s.Field] = []
            while self.kinds[self.at] not in ("}", "end"):
                start = self.at
                depth = self.depth
                try:
                    field_annotations = self.annotations()
                    type_ = self.type()
                    field_name, field_span = self.name("a field name")
                    self.expect(";", f"field '{field_name}'")
                    fields.append(s.Field(field_span, field_name, field_annotations, type_))
                except _SyntaxError:
                    self.depth = depth
                    self.recover_statement(start)
            self.expect("}")
            return s.StructDecl(span, name, annotations, kind, type_params, tuple(fields))

        return self._scoped(rest)

    def enum(self, annotations: s.Annotations) -> s.EnumDecl:
        """`enum E {...}` and `enum bit<8> E {a = 1}`."""
        self.at += 1
        underlying = None
        if not (self.is_name() and self.kinds[self.at + 1] == "{"):
            underlying = self.type()
        name, span = self.name("the enum's name")
        self.declare(name, True)
        self.expect("{")
        members: list[tuple[str, s.Expr | None, Span, s.Annotations]] = []
        while self.kinds[self.at] != "}":
            member_annotations = self.annotations()
            member, member_span = self.name("an enum member")
            value = self.expression() if self.accept("=") else None
            members.append((member, value, member_span, member_annotations))
            if not self.accept(","):
                break
        self.expect("}", "the enum's members")
        return s.EnumDecl(span, name, annotations, underlying, tuple(members))

    def name_list(self, annotations: s.Annotations) -> s.NameList:
        """`error {...}` and `match_kind {...}`."""
        kind, span = self.kinds[self.at], self.span()
        self.at += 1
        self.expect("{")
        members: list[tuple[str, Span]] = []
        while self.kinds[self.at] != "}":
            self.annotations()
            members.append(self.name())
            if not self.accept(","):
                break
        self.expect("}")
        return s.NameList(span, kind, annotations, tuple(members))

    def typedef(self, annotations: s.Annotations) -> s.Decl:
        """`typedef T x;`, `type T x;`, and a typedef that declares its struct in place."""
        fresh = self.kinds[self.at] == "type"
        self.at += 1
        type_ = self.type()
        name, span = self.name("the new type's name")
        self.declare(name, True)
        self.expect(";", f"typedef '{name}'")
        return s.Typedef(span, name, annotations, type_, fresh)

    def extern(self, annotations: s.Annotations) -> s.Decl:
        """An extern object or function."""
        self.at += 1
        if (
            self.is_name()
            and self.kinds[self.at + 1] in ("{", "<", ";")
            and (self._extern_is_object())
        ):
            name, span = self.name()
            self.declare(name, True)
            return self._scoped(lambda: self._extern_object(name, span, annotations))
        return self._scoped(lambda: self._prototype(annotations, extern=True))

    def _extern_is_object(self) -> bool:
        if self.kinds[self.at + 1] in ("{", ";"):
            return True
        level = 0
        for index in range(self.at + 1, len(self.kinds)):
            kind = self.kinds[index]
            level += (kind == "<") - (kind == ">")
            if level == 0:
                return self.kinds[index + 1] in ("{", ";")
        return False

    def _extern_object(self, name: str, span: Span, annotations: s.Annotations) -> s.ExternDecl:
        type_params = self.type_params()
        constructors: list[s.Function] = []
        methods: list[s.Function] = []
        if self.accept(";"):
            return s.ExternDecl(span, name, annotations, type_params, (), ())
        self.expect("{")
        while self.kinds[self.at] not in ("}", "end"):
            start = self.at
            depth = self.depth
            try:
                own = self.annotations()
                if (
                    self.kinds[self.at] == "name"
                    and self.texts[self.at] == name
                    and (self.kinds[self.at + 1] == "(")
                ):
                    _, own_span = self.name()
                    params = self._scoped(self.params)
                    self.expect(";", "the constructor")
                    void = s.BaseType(own_span, "void")
                    constructors.append(s.Function(own_span, name, own, void, (), params, None))
                else:
                    abstract = self.accept("abstract")
                    methods.append(
                        self._scoped(
                            lambda own=own, abstract=abstract: (  # type: ignore[misc]
                                self._prototype(own, abstract=abstract)
                            )
                        )
                    )
            except _SyntaxError:
                self.depth = depth
                self.recover_statement(start)
        self.expect("}")
        return s.ExternDecl(
            span, name, annotations, type_params, tuple(constructors), tuple(methods)
        )

    def _prototype(
        self, annotations: s.Annotations, *, extern: bool = False, abstract: bool = False
    ) -> s.Function:
        returns = self.type()
        name, span = self.name("a function name")
        if extern:
            self.scopes[-2 if len(self.scopes) > 1 else -1][name] = False
        type_params = self.type_params()
        params = self.params()
        self.expect(";", f"the declaration of '{name}'")
        return s.Function(
            span, name, annotations, returns, type_params, params, None, abstract, extern
        )

    def package(self, annotations: s.Annotations) -> s.PackageType:
        """`package P<T>(params);`."""
        self.at += 1
        name, span = self.name("the package's name")
        self.declare(name, True)

        def rest() -> s.PackageType:
            type_params = self.type_params()
            params = self.params()
            self.expect(";", "the package")
            return s.PackageType(span, name, annotations, type_params, params)

        return self._scoped(rest)

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
        while self.kinds[self.at] not in ("}", "end") and not self.at_top_level():
            start = self.at
            depth, scopes = self.depth, len(self.scopes)
            try:
                own = self.annotations()
                if self.kinds[self.at] == "state":
                    states.append(self._scoped(lambda own=own: self.state(own)))  # type: ignore[misc]
                elif self.kinds[self.at] == "value_set":
                    body.append(self.value_set(own))
                else:
                    body.append(self._local(own, "parser"))
            except _SyntaxError:
                self.depth = depth
                del self.scopes[scopes:]
                self.recover_statement(start)
        self._close(f"parser '{name}'")
        return s.ParserDecl(
            span, name, annotations, type_params, params, constructor, tuple(body), tuple(states)
        )

    def _close(self, what: str) -> None:
        """The brace that ends a parser or control."""
        if self.accept("}"):
            return
        self.diagnostics.error(
            "missing-brace",
            self.span(),
            f"{what} is not closed before {self._found()}",
            "a '}' is missing somewhere above; the indentation may tell where",
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
        while self.kinds[self.at] not in ("}", "end"):
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
            except _SyntaxError:
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
        while self.kinds[self.at] not in ("}", "end"):
            begin = self.at
            depth = self.depth
            try:
                keyset = self.keyset()
                self.expect(":", "the case's value")
                name, span = self.name("a state")
                self.expect(";", "the case")
                cases.append(s.SelectCase(self.since(begin), keyset, name, span))
            except _SyntaxError:
                self.depth = depth
                self.recover_statement(begin)
        self.expect("}")
        self.accept(";")
        return s.Transition(where, None, keys, tuple(cases))

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
            right = self.expression()
            return s.Binary(self.since(start), kind, left, right)
        return left

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
        while self.kinds[self.at] not in ("}", "end") and not self.at_top_level():
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
            except _SyntaxError:
                self.depth = depth
                del self.scopes[scopes:]
                if "apply" in self.kinds[start : self.at] and apply is None:
                    apply = s.Block(self.since(start), ())
                self.recover_statement(start)
        self._close(f"control '{name}'")
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
        while self.kinds[self.at] not in ("}", "end"):
            start = self.at
            depth = self.depth
            try:
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
            except _SyntaxError:
                self.depth = depth
                self.recover_statement(start)
        self.expect("}")
        return s.TableDecl(
            span, name, annotations, key, actions, entries, const_entries, tuple(properties)
        )

    def _braced(self, rule: Callable[[], _T]) -> tuple[_T, ...]:
        self.expect("{")
        found: list[_T] = []
        while self.kinds[self.at] not in ("}", "end"):
            start = self.at
            depth = self.depth
            try:
                found.append(rule())
            except _SyntaxError:
                self.depth = depth
                self.recover_statement(start)
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

    # Statements

    def block(self) -> s.Block:
        """`{ statements }`."""
        start = self.at
        annotations = self.annotations()
        self.expect("{")
        self.enter()
        self.scopes.append({})
        body: list[s.Statement] = []
        kinds = self.kinds
        while kinds[self.at] not in ("}", "end"):
            if self.at_top_level():
                raise _SyntaxError
            begin = self.at
            depth, scopes = self.depth, len(self.scopes)
            try:
                body.append(self.statement())
            except _SyntaxError:
                self.depth = depth
                del self.scopes[scopes:]
                self.recover_statement(begin)
        self.scopes.pop()
        self.depth -= 1
        if self.kinds[self.at] == "end":
            raise _SyntaxError
        self.at += 1
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

    def _matching_or_none(self, index: int) -> int | None:
        level = 0
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            if kind == "(":
                level += 1
            elif kind == ")":
                level -= 1
                if level == 0:
                    return at
            elif kind in (";", "{", "}") and kind != "{":
                return None
        return None

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

    def _adjacent(self, first: str, second: str) -> bool:
        at = self.at
        return (
            self.kinds[at] == first
            and self.kinds[at + 1] == second
            and self.starts[at] + 1 == self.starts[at + 1]
        )

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
        while self.kinds[self.at] not in ("}", "end"):
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
        no = None
        if self.accept("else"):
            no = self.statement()
        self.depth -= 1
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
        while self.kinds[self.at] not in ("}", "end"):
            begin, depth = self.at, self.depth
            try:
                cases.append(self._switch_case())
            except _SyntaxError:
                self.depth = depth
                self.recover_statement(begin)
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

    _STATEMENTS: dict[str, Callable[[Parser], s.Statement]] = {
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

    # Expressions

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
        chain = 0
        while True:
            op = kinds[self.at]
            if op == ">" and self._adjacent(">", ">"):
                op = ">>"
            found = _LEVELS.get(op)
            if found is None or found < level:
                break
            chain += 1
            if chain > MAX_CHAIN:
                self.fail(
                    "this expression is too long", "use variables for parts of it", "too-deep"
                )
            if op == ">>" and kinds[self.at + 2] == "=" and self._adjacent(">", ">"):
                break
            if op == "+" and kinds[self.at + 1] == ":":
                break
            self.at += 2 if op == ">>" else 1
            right = self.expression(found + 1)
            left = s.Binary(self.since(start), op, left, right)
        if level == 1 and kinds[self.at] == "?":
            self.at += 1
            yes = self.expression()
            self.expect(":", "the first branch of '?'")
            no = self.expression()
            left = s.Ternary(self.since(start), left, yes, no)
        elif level == 1 and kinds[self.at] == "&&&":
            self.at += 1
            right = self.expression()
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
            return s.Unary(self.since(start), kind, operand)
        if kind == "(" and self._at_cast():
            self.at += 1
            type_ = self.type()
            self.expect(")")
            self.enter()
            operand = self.unary()
            self.depth -= 1
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
        chain = 0
        while True:
            kind = kinds[self.at]
            start_offset = base.span.start
            chain += 1
            if chain > MAX_CHAIN:
                self.fail("this expression is too long", "", "too-deep")
            if kind == ".":
                self.at += 1
                if not self.texts[self.at].isidentifier():
                    self.fail(f"expected a field or method name, found {self._found()}")
                span = self.span()
                name = self.texts[self.at]
                self.at += 1
                base = s.Member(Span(start_offset, span.end), base, name, span)
            elif kind == "(":
                args = self.arguments()
                base = s.Call(self._from(start_offset), base, (), args)
            elif kind == "[":
                self.at += 1
                index = self.expression()
                if self.accept(":"):
                    low = self.expression()
                    self.expect("]", "the slice")
                    base = s.Slice(self._from(start_offset), base, index, low)
                elif kinds[self.at] == "+" and kinds[self.at + 1] == ":":
                    self.at += 2
                    width = self.expression()
                    self.expect("]", "the slice")
                    base = s.PlusSlice(self._from(start_offset), base, index, width)
                else:
                    self.expect("]", "the index")
                    base = s.Index(self._from(start_offset), base, index)
            elif kind == "<" and isinstance(base, (s.Name, s.Member, s.TypeName)):
                type_args = self._try_type_args()
                if type_args is None:
                    return base
                args = self.arguments()
                base = s.Call(self._from(start_offset), base, type_args, args)
            else:
                return base

    def _from(self, start: int) -> Span:
        last = self.at - 1
        return Span(start, self.starts[last] + len(self.texts[last]))

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
        except _SyntaxError:
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
                found.append(s.Argument(self.since(start), name, value))
            if not self.accept(","):
                break
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
        value = _integer(text)
        if value is None:
            self.diagnostics.error(
                "bad-number", span, f"'{text}' is not a number", "digits must follow 0x, 0b or 0o"
            )
            value = 0
        return s.Number(span, value, width, signed, _base(text))

    def primary(self) -> s.Expr:
        """Literals, names, parentheses, braces."""
        start = self.at
        kind = self.kinds[start]
        if kind == "name":
            self.at += 1
            return s.Name(self.span(start), self.texts[start])
        if kind == "number":
            return self.number()
        if kind in ("true", "false"):
            self.at += 1
            return s.Bool(self.span(start), kind == "true")
        if kind == "string":
            self.at += 1
            value = _unescape(self.texts[start][1:-1])
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
        if self.accept("#"):
            self.expect("}")
            self.depth -= 1
            return s.InvalidHeader(self.since(start))
        elements: list[s.Expr] = []
        fields: list[tuple[str, s.Expr, Span]] = []
        rest = False
        while self.kinds[self.at] not in ("}", "end"):
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
            if not self.accept(","):
                break
        self.depth -= 1
        if fields and elements:
            self.fail("a list mixes 'name = value' with plain values", "use one form throughout")
        self.expect("}", "the list")
        if fields:
            return s.StructExpr(self.since(start), tuple(fields), rest)
        return s.ListExpr(self.since(start), tuple(elements), rest)


class _Silent(Diagnostics):
    """Swallows errors while the parser tries something."""

    def __init__(self, real: Diagnostics) -> None:
        super().__init__()
        self.text = real.text

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Do nothing."""


def _base(text: str) -> int:
    return {"x": 16, "b": 2, "o": 8, "d": 10}.get(text[1:2].lower(), 10)


def _integer(text: str) -> int | None:
    digits = text.replace("_", "")
    base = _base(digits)
    body = digits[2:] if base != 10 or digits[1:2].lower() == "d" else digits
    if not body or len(body) > 4000:
        return None
    try:
        return int(body, base)
    except ValueError:
        return None


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append(_ESCAPES.get(following, following))
        else:
            out.append(character)
    return "".join(out)


def parse(tokens: Tokens, diagnostics: Diagnostics) -> s.Program:
    """Parse a token list."""
    parser = Parser(tokens, diagnostics)
    try:
        return parser.program()
    except _SyntaxError:
        return s.Program(())
