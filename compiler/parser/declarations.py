"""A program: the declarations of the top level."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import syntax as s
from compiler.parser.blocks import Blocks
from compiler.parser.cursor import DECLARATION_STARTS, Cursor, NotClosedError, SyntaxMistakeError
from compiler.parser.expressions import Expressions
from compiler.parser.statements import Statements
from compiler.parser.types import Types
from compiler.source import Span


class Declarations:
    """What no other declaration holds."""

    def __init__(
        self,
        cursor: Cursor,
        types: Types,
        expressions: Expressions,
        statements: Statements,
        blocks: Blocks,
    ) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.statements = statements
        self.blocks = blocks
        self.kinds = cursor.kinds
        self.texts = cursor.texts
        self.starts = cursor.starts

    def program(self) -> Iterator[s.Decl]:
        """`p4program : (declaration | ';')*`."""
        while self.kinds[self.cursor.at] != "end":
            start = self.cursor.at
            depth, scopes = self.cursor.depth, len(self.cursor.scopes)
            try:
                if self.cursor.accept(";"):
                    continue
                declaration = self.declaration()
            except SyntaxMistakeError as mistake:
                self.cursor.depth = depth
                del self.cursor.scopes[scopes:]
                if isinstance(mistake, NotClosedError):
                    self._not_closed(start)
                self._recover_declaration(start)
            else:
                if declaration is not None:
                    yield declaration

    def _not_closed(self, start: int) -> None:
        """Report that the declaration which begins at a token has too few '}'."""
        kind, name = self.kinds[start], self.texts[start + 1]
        what = f"{kind} '{name}'" if self.cursor.is_name(start + 1) else "a declaration"
        self.cursor.diagnostics.error(
            "missing-brace",
            self.cursor.span(),
            f"{what} is not closed before {self.cursor.found()}",
            "a '}' is missing somewhere above; the indentation may tell where",
        )

    def _recover_declaration(self, start: int) -> None:
        """Skip to where the next declaration begins."""
        if self.cursor.at == start:
            self.cursor.at += 1
        level = 0
        for index in range(start, self.cursor.at):
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
        while self.kinds[self.cursor.at] != "end":
            kind = self.kinds[self.cursor.at]
            if kind in starts and self.cursor.column_zero():
                return
            if kind == "{":
                level += 1
            elif kind == "}":
                level -= 1
                if level <= 0:
                    self.cursor.at += 1
                    return
            elif kind == ";" and level <= 0:
                self.cursor.at += 1
                return
            self.cursor.at += 1

    def declaration(self) -> s.Decl | None:  # noqa: PLR0912 - one branch per kind
        """`declaration`, by its first word."""
        annotations = self.types.annotations()
        kind = self.kinds[self.cursor.at]
        if kind == "const":
            return self.statements.constant(annotations)
        if kind in ("struct", "header", "header_union"):
            return self.struct(annotations)
        if kind == "enum":
            return self.enum(annotations)
        if kind in ("error", "match_kind") and self.kinds[self.cursor.at + 1] == "{":
            return self.name_list(annotations)
        if kind == "typedef" or (kind == "type" and self.types.starts_type(self.cursor.at + 1)):
            return self.typedef(annotations)
        if kind == "extern":
            return self.extern(annotations)
        if kind == "action":
            return self.blocks.action(annotations)
        if kind == "parser":
            return self.blocks.parser(annotations)
        if kind == "control":
            return self.blocks.control(annotations)
        if kind == "package":
            return self.package(annotations)
        if kind in ("table", "state", "apply", "transition", "if", "switch", "return", "for"):
            self.cursor.fail(
                f"'{kind}' cannot stand at the top level",
                "it belongs inside a "
                + ("parser" if kind in ("state", "transition") else "control")
                + "; was a brace closed too early?",
                "misplaced",
            )
        if kind == "}":
            self.cursor.fail(
                "this '}' closes nothing", "remove it, or find the '{' that is missing"
            )
        if self.types.starts_type(self.cursor.at):
            return self.function_or_instance(annotations)
        return self.cursor.fail(f"expected a declaration, found {self.cursor.found()}")

    def function_or_instance(self, annotations: s.Annotations) -> s.Decl:
        """`functionDeclaration | instantiation`: both begin with a type."""
        returns = self.types.type()
        if self.kinds[self.cursor.at] == "(":
            return self.statements.instance(returns, annotations)
        return self.function(returns, annotations)

    def function(self, returns: s.TypeExpr, annotations: s.Annotations) -> s.Function:
        """`typeOrVoid name typeParameters? parameters blockStatement`, after the type."""
        name, span = self.cursor.name("a function name")
        if self.kinds[self.cursor.at] in (";", "="):
            self.cursor.diagnostics.error(
                "misplaced",
                span,
                f"variable '{name}' declared outside any parser or control",
                "declare it inside a control, parser or action, or make it a 'const'",
            )
            raise SyntaxMistakeError
        self.cursor.declare(name)

        def rest() -> s.Function:
            type_params = self.types.type_params()
            params = self.types.params()
            return s.Function(
                span, name, annotations, returns, type_params, params, self.statements.block()
            )

        return self.cursor.scoped(rest)

    # Type declarations

    def struct(self, annotations: s.Annotations) -> s.StructDecl:
        """`(STRUCT | HEADER | HEADER_UNION) name typeParameters? '{' structField* '}'`.

        `structField : annotations typeRef name ';'`
        """
        kind = self.kinds[self.cursor.at]
        self.cursor.at += 1
        name, span = self.cursor.name(f"the {kind}'s name")
        self.cursor.declare(name, True)

        def rest() -> s.StructDecl:
            type_params = self.types.type_params()
            self.cursor.expect("{")
            fields: list[s.Field] = []
            while self.cursor.inside_braces():
                with self.cursor.recovering():
                    field_annotations = self.types.annotations()
                    type_ = self.types.type()
                    field_name, field_span = self.cursor.name("a field name")
                    self.cursor.expect(";", f"field '{field_name}'")
                    fields.append(s.Field(field_span, field_name, field_annotations, type_))
            self.cursor.expect("}")
            return s.StructDecl(span, name, annotations, kind, type_params, tuple(fields))

        return self.cursor.scoped(rest)

    def enum(self, annotations: s.Annotations) -> s.EnumDecl:
        """`ENUM typeRef? name '{' (name ('=' initializer)?) (',' ...)* '}'`."""
        self.cursor.at += 1
        underlying = None
        if not (self.cursor.is_name() and self.kinds[self.cursor.at + 1] == "{"):
            underlying = self.types.type()
        name, span = self.cursor.name("the enum's name")
        self.cursor.declare(name, True)
        self.cursor.expect("{")
        members: list[tuple[str, s.Expr | None, Span, s.Annotations]] = []
        while self.cursor.inside_braces():
            member_annotations = self.types.annotations()
            member, member_span = self.cursor.name("an enum member")
            value = self.expressions.expression() if self.cursor.accept("=") else None
            members.append((member, value, member_span, member_annotations))
            if not self.cursor.accept(","):
                break
        self.cursor.expect("}", "the enum's members")
        return s.EnumDecl(span, name, annotations, underlying, tuple(members))

    def name_list(self, annotations: s.Annotations) -> s.NameList:
        """`(ERROR | MATCH_KIND) '{' name (',' name)* '}'`."""
        kind, span = self.kinds[self.cursor.at], self.cursor.span()
        self.cursor.at += 1
        self.cursor.expect("{")
        members: list[tuple[str, Span]] = []
        while self.cursor.inside_braces():
            self.types.annotations()
            members.append(self.cursor.name())
            if not self.cursor.accept(","):
                break
        self.cursor.expect("}")
        return s.NameList(span, kind, annotations, tuple(members))

    def typedef(self, annotations: s.Annotations) -> s.Decl:
        """`(TYPEDEF | TYPE) typeRef name ';'`."""
        fresh = self.kinds[self.cursor.at] == "type"
        self.cursor.at += 1
        type_ = self.types.type()
        name, span = self.cursor.name("the new type's name")
        self.cursor.declare(name, True)
        self.cursor.expect(";", f"typedef '{name}'")
        return s.Typedef(span, name, annotations, type_, fresh)

    def extern(self, annotations: s.Annotations) -> s.Decl:
        """`EXTERN (functionPrototype | name typeParameters? '{' methodPrototype* '}')`."""
        self.cursor.at += 1
        if (
            self.cursor.is_name()
            and self.kinds[self.cursor.at + 1] in ("{", "<", ";")
            and (self._extern_is_object())
        ):
            name, span = self.cursor.name()
            self.cursor.declare(name, True)
            return self.cursor.scoped(lambda: self._extern_object(name, span, annotations))
        return self.cursor.scoped(lambda: self._prototype(annotations, extern=True))

    def _extern_is_object(self) -> bool:
        """Whether a '{' or ';' follows the name and its type parameters."""
        if self.kinds[self.cursor.at + 1] in ("{", ";"):
            return True
        level = 0
        for index in range(self.cursor.at + 1, len(self.kinds)):
            kind = self.kinds[index]
            level += (kind == "<") - (kind == ">")
            if level == 0:
                return self.kinds[index + 1] in ("{", ";")
        return False

    def _extern_object(self, name: str, span: Span, annotations: s.Annotations) -> s.ExternDecl:
        """`EXTERN name typeParameters? '{' methodPrototype* '}'`, after the name."""
        type_params = self.types.type_params()
        constructors: list[s.Function] = []
        methods: list[s.Function] = []
        if self.cursor.accept(";"):
            return s.ExternDecl(span, name, annotations, type_params, (), ())
        self.cursor.expect("{")
        while self.cursor.inside_braces():
            with self.cursor.recovering():
                own = self.types.annotations()
                if (
                    self.kinds[self.cursor.at] == "name"
                    and self.texts[self.cursor.at] == name
                    and (self.kinds[self.cursor.at + 1] == "(")
                ):
                    _, own_span = self.cursor.name()
                    params = self.cursor.scoped(self.types.params)
                    self.cursor.expect(";", "the constructor")
                    void = s.BaseType(own_span, "void")
                    constructors.append(s.Function(own_span, name, own, void, (), params, None))
                else:
                    abstract = self.cursor.accept("abstract")
                    methods.append(
                        self.cursor.scoped(
                            lambda own=own, abstract=abstract: (  # type: ignore[misc]
                                self._prototype(own, abstract=abstract)
                            )
                        )
                    )
        self.cursor.expect("}")
        return s.ExternDecl(
            span, name, annotations, type_params, tuple(constructors), tuple(methods)
        )

    def _prototype(
        self, annotations: s.Annotations, *, extern: bool = False, abstract: bool = False
    ) -> s.Function:
        """`functionPrototype : typeOrVoid name typeParameters? '(' parameters ')'`, and its ';'."""
        returns = self.types.type()
        name, span = self.cursor.name("a function name")
        if extern:
            self.cursor.scopes[-2 if len(self.cursor.scopes) > 1 else -1][name] = False
        type_params = self.types.type_params()
        params = self.types.params()
        self.cursor.expect(";", f"the declaration of '{name}'")
        return s.Function(
            span, name, annotations, returns, type_params, params, None, abstract, extern
        )

    def package(self, annotations: s.Annotations) -> s.PackageType:
        """`PACKAGE name typeParameters? parameters ';'`."""
        self.cursor.at += 1
        name, span = self.cursor.name("the package's name")
        self.cursor.declare(name, True)

        def rest() -> s.PackageType:
            type_params = self.types.type_params()
            params = self.types.params()
            self.cursor.expect(";", "the package")
            return s.PackageType(span, name, annotations, type_params, params)

        return self.cursor.scoped(rest)
