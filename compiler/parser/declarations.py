"""A program: the declarations of the top level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler import syntax as s
from compiler.parser.blocks import Blocks
from compiler.parser.cursor import DECLARATION_STARTS, NotClosedError, SyntaxMistakeError

if TYPE_CHECKING:
    from compiler.diagnostics import Span


class Declarations(Blocks):
    """What no other declaration holds."""

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
            except SyntaxMistakeError as mistake:
                self.depth = depth
                del self.scopes[scopes:]
                if isinstance(mistake, NotClosedError):
                    self._not_closed(start)
                self._recover_declaration(start)
        return s.Program(tuple(declarations))

    def _not_closed(self, start: int) -> None:
        """Report that the declaration which begins at a token has too few '}'."""
        kind, name = self.kinds[start], self.texts[start + 1]
        what = f"{kind} '{name}'" if self.is_name(start + 1) else "a declaration"
        self.diagnostics.error(
            "missing-brace",
            self.span(),
            f"{what} is not closed before {self._found()}",
            "a '}' is missing somewhere above; the indentation may tell where",
        )

    def _recover_declaration(self, start: int) -> None:
        if self.at == start:
            self.at += 1
        level = 0
        for index in range(start, self.at):
            level += (self.kinds[index] == "{") - (self.kinds[index] == "}")
        starts = DECLARATION_STARTS - {
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
            raise SyntaxMistakeError
        self.declare(name)

        def rest() -> s.Function:
            type_params = self.type_params()
            params = self.params()
            return s.Function(span, name, annotations, returns, type_params, params, self.block())

        return self._scoped(rest)

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
            while self.inside_braces():
                with self.recovering():
                    field_annotations = self.annotations()
                    type_ = self.type()
                    field_name, field_span = self.name("a field name")
                    self.expect(";", f"field '{field_name}'")
                    fields.append(s.Field(field_span, field_name, field_annotations, type_))
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
        while self.inside_braces():
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
        while self.inside_braces():
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
        while self.inside_braces():
            with self.recovering():
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
