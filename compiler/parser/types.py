"""Types, annotations and parameters."""

from __future__ import annotations

from compiler import syntax as s
from compiler.lexer import SOFT_KEYWORDS
from compiler.parser.cursor import Cursor

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


def _is_words(value: s.Expr) -> bool:
    """Whether a value may be a string."""
    if isinstance(value, s.Binary):
        return value.op == "++" and _is_words(value.left) and _is_words(value.right)
    return isinstance(value, s.String | s.Name)


ADDITION = 10  # its level of precedence; what binds less tightly ends a width


class Types(Cursor):
    """What declarations and expressions both need, but for expressions inside of it."""

    def expression(self, level: int = 1) -> s.Expr:
        """An expression; see `Expressions`."""
        raise NotImplementedError

    def primary(self) -> s.Expr:
        """The smallest expression; see `Expressions`."""
        raise NotImplementedError

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
        self._check_annotations(found)
        return tuple(found)

    def _check_annotations(self, found: list[s.Annotation]) -> None:
        """One of a name, if it is structured; and those that name something do it in words."""
        for index, each in enumerate(found):
            same = [a for a in found[:index] if a.name == each.name]
            if any(a.structured or each.structured for a in same):
                self.diagnostics.error(
                    "duplicate",
                    each.span,
                    f"annotation '@{each.name}' is given twice, once at least with brackets",
                    "put all of it into one pair of brackets",
                )
            if each.name == "pkginfo" and not (each.args or each.pairs):
                self.diagnostics.error(
                    "bad-annotation",
                    each.span,
                    "@pkginfo says nothing",
                    'write @pkginfo(name = "...")',
                )
            if each.name in ("name", "deprecated") and not each.structured:
                for arg in each.args:
                    if not _is_words(arg):
                        self.diagnostics.error(
                            "bad-annotation",
                            arg.span,
                            f"@{each.name} takes a string",
                            "put it in quotes",
                        )

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

    def _starts_type(self, index: int) -> bool:
        kind = self.kinds[index]
        return (
            kind in _BASE_TYPES
            or kind == "name"
            or kind in SOFT_KEYWORDS
            or (kind == "." and self.is_name(index + 1))
        )

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
            return self.expression(ADDITION)
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
