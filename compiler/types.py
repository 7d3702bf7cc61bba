"""Types, after names have been resolved.

Types built from parts are equal when their parts are. Declared types are nominal: each declaration
makes one type, equal to itself alone, whatever another may look like; of a generic declaration,
types are equal when their arguments are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from compiler import syntax as s
from compiler.source import Span
from params.data import Data


class Type(Data, eq=False):
    """Any type; those built from parts say so by having an equality of their own."""

    def __str__(self) -> str:
        return type(self).__name__.lower()


class Bits(Type):
    """`bit<W>` or `int<W>`."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


class InfInt(Type):
    """`int`: integers of arbitrary precision, known at compile time."""

    def __str__(self) -> str:
        return "int"


class BoolType(Type):
    """`bool`."""

    def __str__(self) -> str:
        return "bool"


class Void(Type):
    """The result of a function that returns nothing."""


class StringType(Type):
    """`string`."""

    def __str__(self) -> str:
        return "string"


class ErrorType(Type):
    """`error`."""

    def __str__(self) -> str:
        return "error"


class MatchKindType(Type):
    """`match_kind`."""

    def __str__(self) -> str:
        return "match_kind"


class Varbit(Type):
    """`varbit<W>`."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


class Tuple(Type):
    """`tuple<...>`, also the type of a list expression before it is given a better one."""

    elements: tuple[Type, ...]
    parts: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", 1 + sum(map(parts_of, self.elements)))

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


class ListType(Type):
    """`list<T>`."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


class Stack(Type):
    """`H[n]`."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


class SetType(Type):
    """The type of `a &&& b`, `a .. b` and value sets."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


class StructLiteral(Type):
    """The type of `{x = a}` before it is given a declared one."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "{" + ", ".join(f"{n} = {t}" for n, t in self.fields) + "}"


class InvalidLiteral(Type):
    """The type of `{#}`."""

    def __str__(self) -> str:
        return "{#}"


class Anything(Type):
    """The type of `_`, of `...`, and of expressions already found wrong."""

    def __str__(self) -> str:
        return "_"


class TypeVar(Type):
    """A type parameter; `owner` tells parameters of different declarations apart."""

    name: str
    owner: int

    def __str__(self) -> str:
        return self.name


class Named(Type, eq=False):
    """A declared type."""

    name: str

    def __str__(self) -> str:
        return self.name


class Generic:
    """What is declared once and named with type arguments: equal by declaration and arguments."""

    __slots__ = ()
    args: tuple[Type, ...]

    @property
    def declared(self) -> object:
        """What stands for the declaration in all types made of it."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Generic)
            and self.declared is other.declared
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return hash((id(self.declared), self.args))


class Field(Data):
    """A field of a struct, header or union."""

    name: str
    type: Type
    annotations: s.Annotations = ()
    span: Span | None = None


class Struct(Generic, Named, eq=False):
    """`struct`, `header` or `header_union`, told apart by `kind`."""

    kind: str
    fields: tuple[Field, ...]
    annotations: s.Annotations = ()
    args: tuple[Type, ...] = ()
    decl: s.StructDecl | None = None
    by_name: dict[str, Field] = field(default_factory=dict, repr=False)
    parts: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = 1 + sum(map(parts_of, self.args))
        for each in self.fields:
            self.by_name.setdefault(each.name, each)
            parts += parts_of(each.type)
        object.__setattr__(self, "parts", parts)

    @property
    def declared(self) -> object:
        """Its declaration; a type nobody declared stands for itself."""
        return self if self.decl is None else self.decl

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


class Enum(Named, eq=False):
    """`enum E {a, b}`."""

    members: tuple[str, ...]
    decl: s.EnumDecl | None = None


class SerializableEnum(Named, eq=False):
    """`enum bit<8> E {a = 1}`."""

    underlying: Type
    members: dict[str, int]
    annotations: s.Annotations = ()
    decl: s.EnumDecl | None = None


class NewType(Named, eq=False):
    """`type T x;`."""

    base: Type
    annotations: s.Annotations = ()


class Param(Data):
    """A parameter's type, for types of things that are called."""

    name: str
    direction: str
    type: Type
    optional: bool = False
    default: s.Expr | None = None
    span: Span | None = None

    def substituted(self, binding: Mapping[TypeVar, Type | None]) -> Param:
        """The same with types in place of type variables."""
        return replace(self, type=substitute(self.type, binding))


class Method(Named, eq=False):
    """A function signature: an extern function, a method, a constructor."""

    type_params: tuple[TypeVar, ...]
    params: tuple[Param, ...]
    returns: Type
    annotations: s.Annotations = ()
    abstract: bool = False
    decl: s.Function | None = None


class Extern(Generic, Named, eq=False):
    """An extern object type, perhaps generic; `args` are set in a specialised one."""

    type_params: tuple[TypeVar, ...]
    constructors: tuple[Method, ...]
    methods: tuple[Method, ...]
    args: tuple[Type, ...] = ()
    origin: Extern | None = None

    @property
    def declared(self) -> object:
        """The type without arguments that it was made of."""
        return self.origin or self

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


class BlockType(Named, eq=False):
    """The type of a parser, control or package, by its parameters."""

    kind: str
    type_params: tuple[TypeVar, ...]
    params: tuple[Param, ...]
    constructor_params: tuple[Param, ...] = ()
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


class TableResult(Named, eq=False):
    """What `t.apply()` returns."""

    table: object


INT = InfInt()
BOOL = BoolType()
VOID = Void()
STRING = StringType()
ERROR = ErrorType()
MATCH_KIND = MatchKindType()
ANYTHING = Anything()
INVALID = InvalidLiteral()
BIT1 = Bits(1)
BIT32 = Bits(32)


def strip(type_: Type) -> Type:
    """The type underneath `type` declarations."""
    while isinstance(type_, NewType):
        type_ = type_.base
    return type_


def newness(type_: Type) -> int:
    """How many `type` declarations stand on one another in it."""
    count = 0
    while isinstance(type_, NewType):
        type_, count = type_.base, count + 1
    return count


def underlying(type_: Type) -> Type:
    """The type a value has at run time: newtypes and serializable enums removed."""
    while True:
        if isinstance(type_, NewType):
            type_ = type_.base
        elif isinstance(type_, SerializableEnum):
            type_ = type_.underlying
        else:
            return type_


def is_header(type_: Type) -> bool:
    """Whether this is a header type."""
    return isinstance(type_, Struct) and type_.kind == "header"


def is_union(type_: Type) -> bool:
    """Whether this is a header union type."""
    return isinstance(type_, Struct) and type_.kind == "header_union"


def is_struct(type_: Type) -> bool:
    """Whether this is a plain struct type."""
    return isinstance(type_, Struct) and type_.kind == "struct"


def width_of(type_: Type) -> int | None:
    """Width in bits, the maximum one for varbits; None where there is none."""
    type_ = underlying(type_)
    if isinstance(type_, Bits):
        return type_.width
    if isinstance(type_, BoolType):
        return 1
    if isinstance(type_, Varbit):
        return type_.width
    if isinstance(type_, ErrorType | Enum):
        return 32
    if isinstance(type_, Tuple):
        return _total(type_.elements)
    if isinstance(type_, Stack):
        one = width_of(type_.element)
        return None if one is None else one * type_.size
    if isinstance(type_, Struct):
        widths = [width_of(f.type) for f in type_.fields]
        if type_.kind == "header_union":
            return max((w for w in widths if w is not None), default=0)
        return _total(f.type for f in type_.fields)
    return None


def _total(parts: Iterable[Type]) -> int | None:
    total = 0
    for part in parts:
        width = width_of(part)
        if width is None:
            return None
        total += width
    return total


def parts_of(type_: Type) -> int:
    """How many types a type is made of, all told; what walks it takes that many steps."""
    if isinstance(type_, Struct | Tuple):
        return type_.parts
    if isinstance(type_, Stack):
        return 1 + type_.size * parts_of(type_.element)
    if isinstance(type_, StructLiteral):
        return 1 + sum(parts_of(each) for _, each in type_.fields)
    if isinstance(type_, ListType | SetType):
        return 1 + parts_of(type_.element)
    if isinstance(type_, NewType):
        return parts_of(type_.base)
    if isinstance(type_, Extern | BlockType):
        return 1 + sum(map(parts_of, type_.args))
    return 1


def substitute(type_: Type, binding: Mapping[TypeVar, Type | None]) -> Type:
    """Replace type variables."""
    if not binding:
        return type_
    if isinstance(type_, TypeVar):
        return binding.get(type_) or type_
    if isinstance(type_, Tuple):
        return Tuple(tuple(substitute(e, binding) for e in type_.elements))
    if isinstance(type_, ListType):
        return ListType(substitute(type_.element, binding))
    if isinstance(type_, SetType):
        return SetType(substitute(type_.element, binding))
    if isinstance(type_, Stack):
        return Stack(substitute(type_.element, binding), type_.size)
    if isinstance(type_, Extern) and type_.args:
        return specialise_extern(
            type_.origin or type_, tuple(substitute(a, binding) for a in type_.args)
        )
    if isinstance(type_, BlockType) and type_.args:
        return BlockType(
            type_.name,
            type_.kind,
            (),
            tuple(p.substituted(binding) for p in type_.params),
            type_.constructor_params,
            tuple(substitute(a, binding) for a in type_.args),
        )
    if isinstance(type_, Struct) and type_.args and has_variables(type_):
        return Struct(
            type_.name,
            type_.kind,
            tuple(
                Field(f.name, substitute(f.type, binding), f.annotations, f.span)
                for f in type_.fields
            ),
            type_.annotations,
            tuple(substitute(a, binding) for a in type_.args),
            type_.decl,
        )
    return type_


def substitute_method(method: Method, binding: Mapping[TypeVar, Type | None]) -> Method:
    """Replace type variables in a signature."""
    return Method(
        method.name,
        method.type_params,
        tuple(p.substituted(binding) for p in method.params),
        substitute(method.returns, binding),
        method.annotations,
        method.abstract,
        method.decl,
    )


def specialise_extern(extern: Extern, args: tuple[Type, ...]) -> Extern:
    """An extern type with its type parameters chosen."""
    binding = dict(zip(extern.type_params, args, strict=False))
    return Extern(
        extern.name,
        (),
        tuple(substitute_method(c, binding) for c in extern.constructors),
        tuple(substitute_method(m, binding) for m in extern.methods),
        args,
        extern,
    )


def has_variables(type_: Type) -> bool:
    """Whether any type variable is left in a type."""
    if isinstance(type_, TypeVar):
        return True
    if isinstance(type_, Tuple):
        return any(map(has_variables, type_.elements))
    if isinstance(type_, ListType | SetType | Stack):
        return has_variables(type_.element)
    if isinstance(type_, Extern | BlockType | Struct):
        return any(map(has_variables, type_.args))
    return False
