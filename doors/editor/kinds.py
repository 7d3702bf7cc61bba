"""What a name may declare, in words: its kind, its type, and how its declaration reads."""

from __future__ import annotations

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import BlockEntry, Constant, Declared, GenericStruct
from compiler.check.names import Member
from params.data import Data

HEADER_METHODS = ("isValid", "setValid", "setInvalid")
STACK_PARTS = ("next", "last", "lastIndex", "size")
STACK_METHODS = ("push_front", "pop_front")
SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
TABLE_RESULTS = ("hit", "miss", "action_run")
STATES = ("accept", "reject")


class Part(Data):
    """What may stand behind a dot."""

    name: str
    kind: str
    detail: str = ""
    type: t.Type | None = None


def kind_of(what: object) -> str:  # noqa: PLR0912 - one branch per kind
    """What sort of thing it is."""
    match what:
        case c.Variable():
            return "variable" if what.direction == "var" else "parameter"
        case t.Param():
            return "parameter"
        case t.Field():
            return "field"
        case Constant():
            return "constant"
        case Member():
            return "enum member" if what.type is not None else what.of
        case c.Instance():
            return "instance"
        case c.Table():
            return "table"
        case c.Action():
            return "action"
        case c.ValueSet():
            return "value set"
        case s.StateDecl():
            return "state"
        case t.Method():
            return "function"
        case BlockEntry():
            return what.type.kind
        case GenericStruct():
            return what.decl.kind
        case Declared(type=t.TypeVar()):
            return "type parameter"
        case Declared(type=t.Struct(kind=kind) | t.BlockType(kind=kind)):
            return kind
        case Declared(type=t.Extern()):
            return "extern"
        case Declared(type=t.Enum() | t.SerializableEnum()):
            return "enum"
        case _:
            return "type"


def type_of(what: object) -> t.Type | None:
    """The type of what has a value."""
    match what:
        case c.Variable() | t.Param() | t.Field() | c.Instance() | c.ValueSet() | Member():
            return what.type
        case Constant():
            return what.value.type
        case _:
            return None


def reads(name: str, what: object) -> str:  # noqa: PLR0912 - one branch per kind
    """A declaration as one would write it, without what is inside of it."""
    match what:
        case c.Variable() if what.direction in ("var", "ctor"):
            return f"{what.type} {name}"
        case c.Variable() | t.Param():
            return f"{what.direction} {what.type} {name}".strip()
        case t.Field():
            return f"{what.type} {name}"
        case Constant():
            value = what.value
            said = f" = {_number(value)}" if isinstance(value, c.Const) else ""
            return f"const {value.type} {name}{said}"
        case Member() if what.type is not None:
            return f"{what.of}.{name}" + (f" = {what.value}" if what.value is not None else "")
        case Member():
            return f"{what.of} {name}"
        case c.Instance():
            return f"{what.type} {name}"
        case c.Table():
            return _table(name, what)
        case c.Action():
            return f"action {name}({_params(what.params)})"
        case c.ValueSet():
            return f"value_set<{what.type}>({what.size}) {name}"
        case s.StateDecl():
            return f"state {name}"
        case t.Method():
            generic = f"<{', '.join(v.name for v in what.type_params)}>" if what.type_params else ""
            return f"{what.returns} {name}{generic}({_params(what.params)})"
        case BlockEntry():
            built = f"({_params(what.type.constructor_params)})"
            return f"{what.type.kind} {name}({_params(what.type.params)})" + built * (built != "()")
        case GenericStruct():
            return f"{what.decl.kind} {name}<{', '.join(what.decl.type_params)}>"
        case Declared():
            return _type(name, what.type)
        case _:
            return name


def _type(name: str, type_: t.Type) -> str:
    match type_:
        case t.TypeVar():
            return f"type parameter {name}"
        case t.Struct() if type_.name == name:
            return f"{type_.kind} {name}"
        case t.Extern() if type_.name == name:
            generic = ", ".join(v.name for v in type_.type_params)
            return f"extern {name}<{generic}>" if generic else f"extern {name}"
        case t.BlockType():
            return f"{type_.kind} {name}({_params(type_.params)})"
        case t.Enum() if type_.name == name:
            return f"enum {name}"
        case t.SerializableEnum() if type_.name == name:
            return f"enum {type_.underlying} {name}"
        case t.NewType() if type_.name == name:
            return f"type {type_.base} {name}"
        case _:
            return f"typedef {type_} {name}"


def _table(name: str, table: c.Table) -> str:
    lines = [f"table {name}"]
    lines += [f"    {each.text} : {each.match_kind}" for each in table.key]
    if table.actions:
        lines.append("    actions: " + ", ".join(each.action.name for each in table.actions))
    if table.default is not None:
        lines.append(f"    default: {table.default.ref.action.name}")
    return "\n".join(lines)


def _params(params: tuple[t.Param, ...] | tuple[c.Variable, ...]) -> str:
    return ", ".join(
        f"{each.direction if each.direction != 'ctor' else ''} {each.type} {each.name}".strip()
        for each in params
    )


def _number(value: c.Const) -> str:
    if isinstance(value.value, bool) or not isinstance(value.value, int):
        return str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
    return f"{value.value} ({value.value:#x})" if value.value > 9 else str(value.value)


def width(type_: t.Type | None) -> str:
    """How wide a value is, in words; nothing for what has no width."""
    bits = None if type_ is None else t.width_of(type_)
    if bits is None:
        return ""
    return f"{bits} bits" + (f", {bits // 8} bytes" if bits % 8 == 0 and bits > 8 else "")


def parts_of(type_: t.Type | None) -> list[Part]:
    """What may stand behind a dot after a value of a type."""
    base = None if type_ is None else t.strip(type_)
    match base:
        case t.Struct():
            own = [Part(f.name, "field", str(f.type), f.type) for f in base.fields]
            methods = HEADER_METHODS if base.kind == "header" else ("isValid",)
            sized = SIZES if t.width_of(base) is not None else ()
            more = (*methods, *sized) if base.kind != "struct" else sized
            return own + [Part(name, "method", "()") for name in more]
        case t.Stack():
            own = [
                Part(name, "field", "", base.element if name in ("next", "last") else t.BIT32)
                for name in STACK_PARTS
            ]
            return own + [Part(name, "method", "(int count)") for name in STACK_METHODS]
        case t.Extern():
            return [
                Part(m.name, "method", f"{m.returns} ({_params(m.params)})", m.returns)
                for m in base.methods
            ]
        case t.BlockType() if base.kind != "package":
            return [Part("apply", "method", f"({_params(base.params)})")]
        case t.TableResult():
            return [
                Part("hit", "field", "bool", t.BOOL),
                Part("miss", "field", "bool", t.BOOL),
                Part("action_run", "field", "for switch"),
            ]
        case _:
            return []


def members_of(what: object, errors: list[str]) -> list[Part]:
    """What may stand behind a dot after a type's name, or after that of what is applied."""
    match what:
        case Declared(type=t.Enum(members=members) | t.SerializableEnum(members=members)):
            return [Part(name, "enum member", str(what.type), what.type) for name in members]
        case Declared(type=t.ErrorType()):
            return [Part(name, "enum member", "error", t.ERROR) for name in errors]
        case c.Table():
            return [Part("apply", "method", "()", t.TableResult("apply_result", what))]
        case BlockEntry():
            return [Part("apply", "method", f"({_params(what.type.params)})")]
        case _:
            return []
