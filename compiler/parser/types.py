"""Types, annotations and parameters."""

from __future__ import annotations

from typing import Protocol

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


class Inside(Protocol):
    """What types ask of expressions, which ask for types in turn."""

    def expression(self, level: int = 1) -> s.Expr:
        """What binds as tightly as that."""

    def primary(self) -> s.Expr:
        """What has no operators but in parentheses."""


class Types:
    """What declarations and expressions both need, but for expressions inside of it."""

    expressions: Inside

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.kinds = cursor.kinds
        self.texts = cursor.texts
        self.starts = cursor.starts

    def annotations(self) -> s.Annotations:
        """`annotations : ('@' name body? | '@pragma' ... to the end of its line)*`."""
        if self.kinds[self.cursor.at] != "@":
            return ()
        found: list[s.Annotation] = []
        while self.kinds[self.cursor.at] == "@":
            start = self.cursor.at
            self.cursor.at += 1
            if (
                self.kinds[self.cursor.at] != "name"
                and not self.texts[self.cursor.at].isidentifier()
            ):
                self.cursor.fail("expected an annotation's name after '@'")
            name = self.texts[self.cursor.at]
            self.cursor.at += 1
            if name == "pragma":
                while not self.cursor.begins_line() and self.kinds[self.cursor.at] != "end":
                    self.cursor.at += 1
                continue
            found.append(self._annotation_body(name, start))
        self._check_annotations(found)
        return tuple(found)

    def _check_annotations(self, found: list[s.Annotation]) -> None:
        """One of a name, if it is structured; and those that name something do it in words."""
        structured: dict[str, bool] = {}  # by name: whether one before was
        for each in found:
            known = structured.get(each.name)
            structured[each.name] = bool(known) or each.structured
            if known is not None and structured[each.name]:
                self.cursor.diagnostics.error(
                    "duplicate",
                    each.span,
                    f"annotation '@{each.name}' is given twice, once at least with brackets",
                    "put all of it into one pair of brackets",
                )
            if each.name == "pkginfo" and not (each.args or each.pairs):
                self.cursor.diagnostics.error(
                    "bad-annotation",
                    each.span,
                    "@pkginfo says nothing",
                    'write @pkginfo(name = "...")',
                )
            if each.name in ("name", "deprecated") and not each.structured:
                for arg in each.args:
                    if not _is_words(arg):
                        self.cursor.diagnostics.error(
                            "bad-annotation",
                            arg.span,
                            f"@{each.name} takes a string",
                            "put it in quotes",
                        )

    EXPRESSION_ANNOTATIONS = {
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
        """`annotation : '@' name | '@' name '(' tokens ')' | '@' name '[' values ']'`."""
        kind = self.kinds[self.cursor.at]
        if kind not in ("(", "["):
            return s.Annotation(self.cursor.since(start), name, (), (), ())
        close = ")" if kind == "(" else "]"
        first = self.cursor.at + 1
        end = self.cursor.matching(self.cursor.at)
        tokens = tuple(self.texts[first:end])
        args: tuple[s.Expr, ...] = ()
        pairs: tuple[tuple[str, s.Expr], ...] = ()
        if kind == "[" or name in self.EXPRESSION_ANNOTATIONS:
            self.cursor.at = first
            args, pairs = self._annotation_values(close)
            if self.cursor.at != end:
                self.cursor.fail(
                    f"expected '{close}' to end the annotation, found {self.cursor.found()}"
                )
        self.cursor.at = end
        self.cursor.expect(close)
        return s.Annotation(self.cursor.since(start), name, args, pairs, tokens, kind == "[")

    def _annotation_values(
        self, close: str
    ) -> tuple[tuple[s.Expr, ...], tuple[tuple[str, s.Expr], ...]]:
        """`expressionList | kvList`, as annotations of the language's own have them."""
        args: list[s.Expr] = []
        pairs: list[tuple[str, s.Expr]] = []
        while self.kinds[self.cursor.at] != close:
            named = self.texts[self.cursor.at].isidentifier() and (
                self.kinds[self.cursor.at + 1] == "="
            )
            if args if named else pairs:
                self.cursor.fail("an annotation's values all have names, or none has")
            if named:
                key = self.texts[self.cursor.at]
                self.cursor.at += 2
                pairs.append((key, self.expressions.expression()))
            else:
                args.append(self.expressions.expression())
            if not self.cursor.accept(","):
                break
        return tuple(args), tuple(pairs)

    def starts_type(self, index: int) -> bool:
        """Whether a type may begin at a token."""
        kind = self.kinds[index]
        return (
            kind in _BASE_TYPES
            or kind == "name"
            or kind in SOFT_KEYWORDS
            or (kind == "." and self.cursor.is_name(index + 1))
        )

    def type(self) -> s.TypeExpr:
        """`typeRef : (baseType | tupleType | listType | '.'? name typeArguments?) ('[' size ']')*`.

        `baseType : BOOL | ERROR | STRING | MATCH_KIND | VOID | '_' | INT | BIT |
        (BIT | INT | VARBIT) '<' width '>'`
        """
        start = self.cursor.at
        self.cursor.enter()
        kind = self.kinds[self.cursor.at]
        result: s.TypeExpr
        if kind in ("bit", "int", "varbit"):
            self.cursor.at += 1
            if self.kinds[self.cursor.at] == "<":
                self.cursor.at += 1
                width = self._width()
                self.close_angle()
                result = s.SizedType(self.cursor.since(start), kind, width)
            elif kind == "int":
                result = s.BaseType(self.cursor.since(start), "int")
            elif kind == "bit":
                result = s.SizedType(self.cursor.since(start), "bit", None)
            else:
                self.cursor.fail("varbit needs a maximum width", "write varbit<N>")
        elif kind == "tuple":
            self.cursor.at += 1
            self.cursor.expect("<")
            elements = self.type_list()
            result = s.TupleType(self.cursor.since(start), elements)
        elif kind == "list" and self.kinds[self.cursor.at + 1] == "<":
            self.cursor.at += 2
            element = self.type()
            self.close_angle()
            result = s.ListType(self.cursor.since(start), element)
        elif kind in ("bool", "error", "string", "match_kind", "void", "_"):
            self.cursor.at += 1
            result = s.BaseType(self.cursor.since(start), kind)
        else:
            self.cursor.accept(".")
            name, _ = self.cursor.name("a type")
            args: tuple[s.TypeExpr, ...] = ()
            if self.kinds[self.cursor.at] == "<":
                self.cursor.at += 1
                if self.kinds[self.cursor.at] == "number":
                    self.cursor.fail(
                        f"type '{name}' takes no width",
                        "the types with a width are bit, int and varbit",
                    )
                args = self.type_list()
            result = s.NamedType(self.cursor.since(start), name, args)
        while self.kinds[self.cursor.at] == "[":
            self.cursor.at += 1
            size = self.expressions.expression()
            self.cursor.expect("]")
            result = s.StackType(self.cursor.since(start), result, size)
        self.cursor.depth -= 1
        return result

    def _width(self) -> s.Expr:
        """A width: a number, a constant's name, or an expression in parentheses."""
        if self.kinds[self.cursor.at] == "(":
            return self.expressions.primary()
        start = self.cursor.at
        if self.kinds[self.cursor.at] == "number" or self.cursor.is_name():
            return self.expressions.expression(ADDITION)
        self.cursor.at = start
        return self.cursor.fail(
            f"expected a width, found {self.cursor.found()}",
            "use a number, a constant, or an expression in parentheses",
        )

    def type_list(self) -> tuple[s.TypeExpr, ...]:
        """Types up to the closing '>'."""
        types: list[s.TypeExpr] = []
        if self.kinds[self.cursor.at] != ">":
            types.append(self.type())
            while self.cursor.accept(","):
                types.append(self.type())
        self.close_angle()
        return tuple(types)

    def close_angle(self) -> None:
        """The '>' that ends type arguments; of '>>' the first half."""
        if self.kinds[self.cursor.at] != ">":
            self.cursor.fail(f"expected '>' to close '<', found {self.cursor.found()}")
        self.cursor.at += 1

    def type_params(self) -> tuple[s.Word, ...]:
        """`<A, B>` in a declaration, if present."""
        if not self.cursor.accept("<"):
            return ()
        names: list[s.Word] = []
        while True:
            name, span = self.cursor.name("a type parameter")
            self.cursor.declare(name, True)
            names.append(s.Word(name, span))
            if not self.cursor.accept(","):
                break
        self.close_angle()
        return tuple(names)

    def params(self) -> tuple[s.Parameter, ...]:
        """`'(' (parameter (',' parameter)*)? ')'`.

        `parameter : annotations (IN | OUT | INOUT)? typeRef name ('=' expression)?`
        """
        self.cursor.expect("(")
        found: list[s.Parameter] = []
        while self.kinds[self.cursor.at] != ")":
            annotations = self.annotations()
            direction = ""
            if self.kinds[self.cursor.at] in ("in", "out", "inout"):
                direction = self.kinds[self.cursor.at]
                self.cursor.at += 1
            type_ = self.type()
            name, span = self.cursor.name("a parameter name")
            default = self.expressions.expression() if self.cursor.accept("=") else None
            self.cursor.declare(name)
            found.append(s.Parameter(span, name, annotations, direction, type_, default))
            if not self.cursor.accept(","):
                break
        self.cursor.expect(")", "the parameters")
        return tuple(found)
