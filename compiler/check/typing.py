"""Type expressions, inference of type arguments, and implicit conversion."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from compiler import core as c
from compiler import folding
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import BlockEntry, Context, Declared, GenericStruct
from compiler.source import Span

MAX_WIDTH = 1 << 14
MAX_STACK = 4096
MAX_PARTS = 1 << 17  # of a type, each field of a struct within a struct counted
_NO_ELEMENT = (t.Void, t.StringType, t.Extern, t.BlockType, t.SetType)

Binding = dict[t.TypeVar, t.Type | None]


class Inside(Protocol):
    """What types ask of expressions, which have types."""

    def expr(self, node: s.Expr, expected: t.Type | None = None) -> c.Expr:
        """Type one, and convert it if a type is expected."""


class Typing:
    """Resolves types and converts between them."""

    expressions: Inside

    def __init__(self, context: Context) -> None:
        self.context = context

    # Type expressions

    def resolve(self, node: s.TypeExpr) -> t.Type:
        """The type a type expression names."""
        return self.bounded(self._resolve(node), node.span)

    def bounded(self, type_: t.Type, span: Span) -> t.Type:
        """The type, unless walking it would take too long: each that holds another twice is twice
        as long."""
        if t.parts_of(type_) <= MAX_PARTS:
            return type_
        self.context.error(
            "too-large",
            span,
            f"this type has more than {MAX_PARTS} parts when all within it are counted",
            "let structures hold each other less often",
        )
        return t.ANYTHING

    def _resolve(self, node: s.TypeExpr) -> t.Type:
        """`typeRef`, by its kind."""
        if isinstance(node, s.SizedType):
            return self._sized(node)
        if isinstance(node, s.BaseType):
            return {
                "bool": t.BOOL,
                "error": t.ERROR,
                "string": t.STRING,
                "void": t.VOID,
                "match_kind": t.MATCH_KIND,
                "int": t.INT,
                "_": t.ANYTHING,
            }[node.name]
        if isinstance(node, s.NamedType):
            return self._named(node)
        if isinstance(node, s.StackType):
            return self._stack(node)
        if isinstance(node, s.TupleType):
            return t.Tuple(tuple(self._element(e) for e in node.elements))
        if isinstance(node, s.ListType):
            return t.ListType(self.resolve(node.element))
        raise AssertionError(node)

    def _element(self, node: s.TypeExpr) -> t.Type:
        """The type of a tuple's element."""
        type_ = self.resolve(node)
        dont_care = isinstance(node, s.BaseType) and node.name == "_"
        if dont_care or isinstance(type_, _NO_ELEMENT):
            self.context.error(
                "bad-type",
                node.span,
                f"a tuple cannot have an element of type {type_}",
                "tuples hold what structs can",
            )
            return t.ANYTHING
        return type_

    def _sized(self, node: s.SizedType) -> t.Type:
        """7.1.6: widths are known, and in range."""
        if node.width is None:
            return t.Bits(1)
        width = self.constant_int(node.width, "a width")
        if width is None:
            return t.ANYTHING
        minimum = 0
        if width < minimum or width > MAX_WIDTH:
            self.context.error(
                "bad-width",
                node.span,
                f"{node.name}<{width}> is not a possible width",
                f"widths go from {minimum} to {MAX_WIDTH}",
            )
            return t.ANYTHING
        if node.name == "varbit":
            return t.Varbit(width)
        if node.name == "int" and width < 1:
            self.context.error(
                "bad-width", node.span, "int<0> is not a possible width", "use at least 1"
            )
            return t.ANYTHING
        return t.Bits(width, node.name == "int")

    def _named(self, node: s.NamedType) -> t.Type:
        """`typeName typeArguments?`: a declared type, specialised if it is generic."""
        entry = self.context.lookup(node.name, span=node.span)
        args = tuple(self.resolve(a) for a in node.args)
        if isinstance(entry, Declared):
            type_ = entry.type
            if type_ is self.context.place.declares:
                self.context.error(
                    "bad-extern",
                    node.span,
                    f"extern '{node.name}' cannot mention itself",
                    "give the method another type",
                )
                return t.ANYTHING
            if isinstance(type_, t.Extern | t.BlockType) and type_.type_params:
                self._refuse_within_itself(node, args)
                return self._specialise(node, type_, args)
            if args:
                self.context.error(
                    "not-generic",
                    node.span,
                    f"type '{node.name}' takes no type arguments",
                    f"write just '{node.name}'",
                )
            return type_
        if isinstance(entry, GenericStruct):
            for arg in node.args:
                if isinstance(arg, s.BaseType) and arg.name == "_":
                    self.context.error(
                        "bad-type",
                        arg.span,
                        f"'_' cannot stand for a type argument of '{node.name}'",
                        "write the type: nothing tells which it would be",
                    )
            self._refuse_within_itself(node, args)
            return self.instantiate_struct(entry, args, node.span)
        if isinstance(entry, BlockEntry):
            return entry.type
        if entry is None:
            types = [
                n
                for scope in self.context.scopes
                for n, e in scope.items()
                if isinstance(e, Declared | GenericStruct | BlockEntry)
            ]
            self.context.error(
                "unknown-type",
                node.span,
                f"there is no type named '{node.name}'",
                self.context.similar(node.name, types)
                or "declare it before this line, or include the file that does",
            )
        else:
            self.context.error("not-a-type", node.span, f"'{node.name}' is not a type")
        return t.ANYTHING

    def _refuse_within_itself(self, node: s.NamedType, args: tuple[t.Type, ...]) -> None:
        """A generic type is no part of what it is made for, nor of a part of that."""
        if _mention(args, node.name):
            self.context.error(
                "type-arguments",
                node.span,
                f"'{node.name}' cannot be made for a type that contains '{node.name}' itself",
                "declare a second type for the outer one",
            )

    def _specialise(
        self, node: s.NamedType, type_: t.Extern | t.BlockType, args: tuple[t.Type, ...]
    ) -> t.Type:
        """7.2.11: a generic extern or block with its arguments."""
        if not args:
            return type_
        if len(args) != len(type_.type_params):
            self.context.error(
                "type-arguments",
                node.span,
                f"'{node.name}' takes {len(type_.type_params)} type argument(s), not {len(args)}",
                "the generations of v1model differ here; see V1MODEL_VERSION"
                if node.name in ("register", "counter", "meter")
                else "",
            )
            return t.ANYTHING
        if isinstance(type_, t.Extern):
            return t.specialise_extern(type_, args)
        binding = dict(zip(type_.type_params, args, strict=True))
        params = tuple(p.substituted(binding) for p in type_.params)
        return t.BlockType(type_.name, type_.kind, (), params, type_.constructor_params, args)

    def instantiate_struct(
        self, generic: GenericStruct, args: tuple[t.Type, ...], span: Span
    ) -> t.Type:
        """A generic struct with its type arguments."""
        decl = generic.decl
        if len(args) != len(decl.type_params):
            self.context.error(
                "type-arguments",
                span,
                f"'{decl.name}' takes {len(decl.type_params)} type argument(s), not {len(args)}",
            )
            return t.ANYTHING
        key = tuple(_key(a) for a in args)
        made = generic.made.get(key)
        if made is None:
            kept = self.context.scopes
            self.context.scopes = [
                self.context.scopes[0],
                self.context.type_arguments(decl.type_params, args),
            ]
            made = t.Struct(
                decl.name, decl.kind, self.struct_fields(decl), decl.annotations, args, decl
            )
            self.context.scopes = kept
            generic.made[key] = made
            if decl.type_params and not t.has_variables(made):
                self.context.program.types.append(made)
        return made

    def _annotations(self, annotations: s.Annotations) -> s.Annotations:
        """A field's annotations; the numbers of its field lists may be written as constants."""
        return tuple(
            replace(note, args=tuple(self._list_number(arg) for arg in note.args))
            if note.name == "field_list"
            else note
            for note in annotations
        )

    def _list_number(self, node: s.Expr) -> s.Expr:
        if isinstance(node, s.Number):
            return node
        value = self.constant_int(node, "the number of a field list")
        return node if value is None else s.Number(node.span, value, None, signed=False)

    def struct_fields(self, decl: s.StructDecl) -> tuple[t.Field, ...]:
        """The fields of a struct-like declaration, each checked for what may stand there."""
        fields: list[t.Field] = []
        seen: set[str] = set()
        for each in decl.fields:
            type_ = self.resolve(each.type)
            if each.name in seen:
                self.context.error(
                    "duplicate",
                    each.span,
                    f"field '{each.name}' is declared twice",
                    "rename one of the two",
                )
                continue
            seen.add(each.name)
            if isinstance(each.type, s.BaseType) and each.type.name == "_":
                self.context.error(
                    "bad-field", each.span, "a field cannot have type '_'", "write its type"
                )
            for note in each.annotations:
                if note.name == "match":
                    self._check_match(note)
            problem = _field_problem(decl.kind, type_)
            if problem:
                self.context.error(
                    "bad-field",
                    each.span,
                    f"a {decl.kind} cannot have a field of type {type_}",
                    problem,
                )
                type_ = t.ANYTHING
            if (
                isinstance(type_, t.Varbit)
                and decl.kind == "header"
                and any(isinstance(f.type, t.Varbit) for f in fields)
            ):
                self.context.error(
                    "bad-field",
                    each.span,
                    "a header can have one varbit field only",
                    "split it into two headers",
                )
            own = self._annotations(each.annotations)
            fields.append(t.Field(each.name, type_, own, each.span))
            self.context.note(each.span, fields[-1])
        return tuple(fields)

    def _check_match(self, note: s.Annotation) -> None:
        """`@match(kind)` of a value set's field."""
        for arg in note.args:
            if not isinstance(arg, s.Name) or arg.name not in self.context.match_kinds:
                self.context.error(
                    "bad-annotation",
                    arg.span,
                    "@match takes a match kind",
                    "the match kinds are: " + ", ".join(self.context.match_kinds),
                )
            elif self.context.meanings is not None:
                self.context.meanings.mean_member(arg.span, "match_kind", arg.name)

    def _stack(self, node: s.StackType) -> t.Type:
        """7.2.3: of headers or unions, of a size known."""
        element = self.resolve(node.element)
        size = self.constant_int(node.size, "a stack's size")
        if size is None or element is t.ANYTHING:
            return t.ANYTHING
        if not (t.is_header(element) or t.is_union(element) or isinstance(element, t.TypeVar)):
            self.context.error(
                "bad-stack",
                node.span,
                f"a stack of {element} cannot be",
                "only headers and header unions can be stacked",
            )
            return t.ANYTHING
        if not 0 < size <= MAX_STACK:
            self.context.error(
                "bad-stack",
                node.span,
                f"a stack of {size} elements cannot be",
                f"sizes go from 1 to {MAX_STACK}",
            )
            return t.ANYTHING
        return t.Stack(element, size)

    def constant_int(self, node: s.Expr, what: str) -> int | None:
        """The value of an expression that must be an integer known at compile time."""
        value = self.expressions.expr(node)
        if isinstance(value.type, t.BoolType):
            value = c.Any(value.span, t.VOID)
        if isinstance(value, c.Cast) and isinstance(value.operand, c.Const):
            value = value.operand
        if isinstance(value, c.Const) and isinstance(value.value, int):
            return int(value.value)
        if value.type is not t.ANYTHING:
            self.context.error(
                "not-constant",
                node.span,
                f"{what} must be an integer known at compile time",
                "use a number or a 'const'",
            )
        return None

    # Inference

    def unify(self, param: t.Type, arg: t.Type, binding: Binding) -> None:  # noqa: PLR0912 - one branch per kind
        """Learn type variables from an argument; mismatches are left to `coerce`."""
        if isinstance(param, t.TypeVar):
            known = binding.get(param)
            if (known is None and param in binding) or known is t.INT or known is t.ANYTHING:
                if arg is not t.ANYTHING:
                    binding[param] = arg
            elif isinstance(known, t.Tuple | t.StructLiteral) and isinstance(arg, t.Struct):
                binding[param] = arg
            return
        if isinstance(param, t.Tuple) and isinstance(arg, t.Tuple):
            for one, other in zip(param.elements, arg.elements, strict=False):
                self.unify(one, other, binding)
        elif isinstance(param, t.ListType) and isinstance(arg, t.Tuple):
            for each in arg.elements:
                self.unify(param.element, each, binding)
        elif isinstance(param, t.Stack | t.ListType | t.SetType) and isinstance(arg, type(param)):
            self.unify(param.element, arg.element, binding)
        elif isinstance(param, t.Struct | t.Extern) and isinstance(arg, type(param)):
            for one, other in zip(param.args, arg.args, strict=False):
                self.unify(one, other, binding)
            if isinstance(param, t.Extern) and param.type_params and arg.args:
                return
        elif isinstance(param, t.Struct) and isinstance(arg, t.Tuple | t.StructLiteral):
            given = arg.elements if isinstance(arg, t.Tuple) else [x for _, x in arg.fields]
            for field, each in zip(param.fields, given, strict=False):
                self.unify(field.type, each, binding)
        elif isinstance(param, t.BlockType) and isinstance(arg, t.BlockType):
            for own, its in zip(param.params, arg.params, strict=False):
                self.unify(own.type, its.type, binding)

    # Conversion

    def coerce(self, value: c.Expr, want: t.Type, what: str = "") -> c.Expr:
        """Convert implicitly, or report that it cannot be."""
        have = value.type
        if isinstance(value, c.DefaultValue):  # 8.27: `...` has the type of what it fills
            return replace(value, type=want)
        if have is want or want is t.ANYTHING or have is t.ANYTHING or have == want:
            return value
        done = self.try_coerce(value, want)
        if done is not None:
            return done
        self.mismatch(value, want, what)
        return c.Cast(value.span, want, value)

    def assigned(self, node: s.Expr, want: t.Type) -> c.Expr:
        """A value on its way into a variable, a constant or a result: there, and there alone, a
        number without width becomes a `type` by itself."""
        if isinstance(want, t.NewType) and isinstance(want.base, t.Bits):
            value = self.expressions.expr(node)
            if isinstance(value.type, t.InfInt):
                return replace(self.fit(value, want.base), type=want)
            return self.coerce(value, want)
        return self.expressions.expr(node, want)

    def try_coerce(self, value: c.Expr, want: t.Type) -> c.Expr | None:  # noqa: PLR0912 - one branch per kind
        """8.12.2: the conversions that happen by themselves; None if there is none."""
        have = value.type
        if isinstance(have, t.InfInt) and isinstance(want, t.Bits):
            return self.fit(value, want)
        if isinstance(have, t.SerializableEnum) and have.underlying == want:
            if isinstance(value, c.Const):
                return c.Const(value.span, want, value.value)
            return c.Cast(value.span, want, value)
        if isinstance(value, c.Aggregate) and isinstance(have, t.Tuple | t.StructLiteral):
            return self._coerce_aggregate(value, want)
        if have is t.INVALID and (t.is_header(want) or t.is_union(want)):
            return c.Invalid(value.span, want)
        if isinstance(value, c.DefaultValue):
            return replace(value, type=want)
        if isinstance(have, t.Tuple) and isinstance(want, t.Struct) and want.kind == "struct":
            return None
        if isinstance(want, t.SetType):
            inner = self.try_coerce(value, want.element)
            return inner if inner is not None else (value if have == want.element else None)
        if isinstance(have, t.SetType) and isinstance(value, c.Mask | c.Range):
            return None
        if isinstance(value, c.Ternary):
            yes = self._try(value.yes, want)
            no = self._try(value.no, want)
            if yes is not None and no is not None:
                return c.Ternary(value.span, want, value.condition, yes, no)
        if isinstance(have, t.BlockType) and isinstance(want, t.BlockType):
            return value if self.block_fits(have, want) else None
        if (
            isinstance(have, t.Extern)
            and isinstance(want, t.Extern)
            and ((have.origin or have) is (want.origin or want))
            and not want.args
        ):
            return value
        return None

    def _try(self, value: c.Expr, want: t.Type) -> c.Expr | None:
        return value if value.type == want else self.try_coerce(value, want)

    def block_fits(self, have: t.BlockType, want: t.BlockType) -> bool:
        """11.3.2: parameters of the same directions and types."""
        if have.kind != want.kind or len(have.params) != len(want.params):
            return False
        return all(
            own.direction == its.direction
            and (
                own.type == its.type
                or t.has_variables(its.type)
                or its.type is t.ANYTHING
                or own.type is t.ANYTHING
            )
            for own, its in zip(have.params, want.params, strict=True)
        )

    def _coerce_aggregate(self, value: c.Aggregate, want: t.Type) -> c.Expr | None:
        """8.12.2, 8.14: a list takes the type of where it stands, part by part."""
        parts = list(value.parts)
        rest = bool(parts) and parts[-1][0] == "..."
        if rest:
            parts.pop()
        named = isinstance(value.type, t.StructLiteral)
        if isinstance(want, t.Struct):
            return self._coerce_struct(value, want, parts, rest, named)
        if named:
            return None
        elements: list[t.Type]
        if isinstance(want, t.Tuple):
            elements = list(want.elements)
        elif isinstance(want, t.Stack):
            elements = [want.element] * want.size
        elif isinstance(want, t.ListType):
            elements = [want.element] * len(parts)
        else:
            return None
        if rest:
            parts += [
                (f"f{i}", c.DefaultValue(value.span, elements[i]))
                for i in range(len(parts), len(elements))
            ]
        if len(parts) != len(elements):
            return None
        return c.Aggregate(
            value.span,
            want,
            tuple(
                (f"f{i}", self.coerce(part, element))
                for i, ((_, part), element) in enumerate(zip(parts, elements, strict=True))
            ),
        )

    def _coerce_struct(
        self,
        value: c.Aggregate,
        want: t.Struct,
        parts: list[tuple[str, c.Expr]],
        rest: bool,
        named: bool,
    ) -> c.Expr | None:
        """8.14: fields by position or by name; `...` for those not given."""
        if want.kind == "header_union":
            return None
        if not named:
            if len(parts) > len(want.fields) or (len(parts) < len(want.fields) and not rest):
                self.context.error(
                    "field-count",
                    value.span,
                    f"{want} has {len(want.fields)} field(s), the list has {len(parts)}",
                    "give one value for each field, in order",
                )
                return c.Cast(value.span, want, value)
            given = {f.name: part for f, (_, part) in zip(want.fields, parts, strict=False)}
        else:
            given = dict(parts)
            if self.context.meanings is not None:
                self.context.meanings.lead_fields(value.span, want.by_name)
            for name, part in parts:
                if name not in want.by_name:
                    self.context.error(
                        "unknown-field",
                        part.span,
                        f"{want} has no field '{name}'",
                        self.context.similar(name, want.by_name),
                    )
            missing = [f.name for f in want.fields if f.name not in given]
            if missing and not rest:
                self.context.error(
                    "field-count",
                    value.span,
                    f"field '{missing[0]}' of {want} is not given a value",
                    "add it, or end the list with '...'",
                )
        return c.Aggregate(
            value.span,
            want,
            tuple(
                (
                    f.name,
                    self.coerce(given[f.name], f.type)
                    if f.name in given
                    else c.DefaultValue(value.span, f.type),
                )
                for f in want.fields
            ),
        )

    def fit(self, value: c.Expr, want: t.Bits) -> c.Expr:
        """Give an integer of arbitrary precision a width."""
        if not isinstance(value, c.Const):
            return c.Cast(value.span, want, value)
        number = int(value.value)
        wrapped = folding.wrap(number, want)
        if wrapped != number and not self.context.system:
            if number < 0 and not want.signed:
                if number < -(1 << max(0, want.width - 1)):
                    self.context.warning(
                        "overflow",
                        value.span,
                        f"{number} does not fit in {want}; it becomes {wrapped}",
                        "use a wider type",
                    )
            else:
                self.context.warning(
                    "overflow",
                    value.span,
                    f"{number} does not fit in {want}; it becomes {wrapped}",
                    "use a wider type or a smaller number",
                )
        return c.Const(value.span, want, wrapped, value.written if wrapped == number else "")

    def mismatch(self, value: c.Expr, want: t.Type, what: str = "") -> None:
        """Report that a value has the wrong type."""
        have = value.type
        where = f" for {what}" if what else ""
        cure = ""
        base, target = t.strip(have), t.strip(want)
        code = "type-mismatch"
        if isinstance(have, t.NewType) or isinstance(want, t.NewType):
            made = want if isinstance(want, t.NewType) else have
            cure = f"'{made}' is a type of its own: cast with ({want}) ..."
        elif isinstance(base, t.Bits) and isinstance(target, t.Bits):
            code = "width-mismatch"
            if base.signed == target.signed:
                cure = f"cast it: ({want}) ..." + (
                    f", or take a slice [{target.width - 1}:0]"
                    if base.width > target.width > 0 and not base.signed
                    else ""
                )
            elif base.width == target.width:
                cure = f"cast it: ({want}) ..."
            else:
                cure = f"cast in two steps: ({want}) ({t.Bits(base.width, target.signed)}) ..."
        elif isinstance(target, t.BoolType) and isinstance(base, t.Bits | t.InfInt):
            cure = "compare it with 0: ... != 0"
        elif isinstance(base, t.BoolType) and isinstance(target, t.Bits):
            cure = (
                f"cast it: ({want}) ..."
                if target.width == 1
                else f"choose: (... ? {target.width}w1 : {target.width}w0)"
            )
        elif isinstance(have, t.InfInt) and isinstance(want, t.SerializableEnum):
            cure = f"cast it: ({want}) ..."
        self.context.error(code, value.span, f"expected {want}{where}, found {have}", cure)


def _mention(types: tuple[t.Type, ...], name: str) -> bool:
    """Whether a generic type is one of these, a part of one, or what one was made for."""
    seen: set[int] = set()
    work = list(types)
    while work:
        each = work.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        match each:
            case t.Struct() | t.Extern():
                if each.args and each.name == name:
                    return True
                work += each.args
                work += [f.type for f in each.fields] if isinstance(each, t.Struct) else []
            case t.Stack() | t.ListType():
                work.append(each.element)
            case t.Tuple():
                work += each.elements
    return False


def _key(type_: t.Type) -> str:
    """A text that is equal for equal types."""
    if isinstance(type_, t.Named):
        return (
            f"{type_}@{id(getattr(type_, 'decl', None) or getattr(type_, 'origin', None) or type_)}"
        )
    return f"{type(type_).__name__}:{type_}"


def type_key(args: tuple[t.Type, ...]) -> tuple[str, ...]:
    """A dictionary key for type arguments."""
    return tuple(_key(a) for a in args)


def _field_problem(kind: str, type_: t.Type) -> str:
    """7.2.2 to 7.2.5: why a type cannot be a header's, union's or struct's field; "" if it can."""
    base = t.strip(type_)
    if type_ is t.ANYTHING or isinstance(base, t.TypeVar):
        return ""
    if kind == "header_union":
        return "" if t.is_header(base) else "a header_union holds headers only"
    if kind == "header" and isinstance(base, t.Tuple):
        return "headers hold bit<>, int<>, varbit<>, bool and serializable enums"
    if isinstance(
        base,
        t.InfInt
        | t.Void
        | t.StringType
        | t.Extern
        | t.BlockType
        | t.MatchKindType
        | t.ListType
        | t.SetType,
    ):
        return "it has no representation at run time"
    if kind == "header":
        if isinstance(base, t.Bits | t.BoolType | t.Varbit | t.SerializableEnum):
            return ""
        if t.is_struct(base) and isinstance(base, t.Struct):
            bad = [f for f in base.fields if _field_problem("header", f.type)]
            return "" if not bad else f"its field '{bad[0].name}' has no fixed layout"
        return "headers hold bit<>, int<>, varbit<>, bool and serializable enums"
    return ""
