"""P4Info: what the control plane may see of a program, as P4Runtime describes it.

Ids are hashes of control-plane names, so a name is a contract: the same program gives the same
ids here, in p4c, and tomorrow. An alias is the shortest suffix of a name that no other object
shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4i, p4t

from compiler import core as c
from compiler import folding, ir
from compiler import syntax as s
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.instances import BlockInstance, Instances, annotation, given_name, join

PREFIXES = {
    "action": 0x01,
    "table": 0x02,
    "value_set": 0x03,
    "controller_header": 0x04,
    "action_profile": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "meter": 0x14,
    "direct_meter": 0x15,
    "register": 0x16,
    "digest": 0x17,
}
_KINDS = {
    "counter": "counter",
    "direct_counter": "direct_counter",
    "meter": "meter",
    "direct_meter": "direct_meter",
    "register": "register",
    "action_profile": "action_profile",
    "action_selector": "action_profile",
}
_PROFILE_ANNOTATIONS = ("max_group_size", "selector_size_semantics", "max_member_weight")
_COUNTER_UNITS = {
    "packets": p4i.CounterSpec.PACKETS,
    "bytes": p4i.CounterSpec.BYTES,
    "packets_and_bytes": p4i.CounterSpec.BOTH,
}
_METER_UNITS = {"packets": p4i.MeterSpec.PACKETS, "bytes": p4i.MeterSpec.BYTES}
_MATCH = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
}


def name_hash(name: str) -> int:
    """Jenkins' one-at-a-time hash, 32 bits."""
    value = 0
    for byte in name.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


class Symbols:
    """Ids and aliases of all objects."""

    def __init__(self, diagnostics: Diagnostics | None = None) -> None:
        self.diagnostics = diagnostics or Diagnostics()
        self._ids: dict[str, dict[str, int | None]] = {kind: {} for kind in PREFIXES}
        self._suffixes: dict[tuple[str, ...], int] = {}
        self._known: set[str] = set()
        self._taken: set[int] = set()

    def add(self, kind: str, name: str, wanted: s.Annotation | None = None) -> None:
        """Enter an object, with the `@id` it has, if any."""
        if name in self._ids[kind]:
            return
        self._ids[kind][name] = None if wanted is None else self._given(PREFIXES[kind], wanted)
        parts = tuple(name.split("."))
        if name not in self._known:
            self._known.add(name)
            for start in range(len(parts)):
                suffix = parts[start:]
                self._suffixes[suffix] = self._suffixes.get(suffix, 0) + 1

    def _given(self, prefix: int, wanted: s.Annotation) -> int | None:
        """The id an annotation gives; the byte that tells the kind may be left out."""
        value = literal(wanted.args[0]) if wanted.args else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 32:
            self.diagnostics.error(
                "bad-annotation", wanted.span, "@id takes a number of 32 bits", "write @id(1)"
            )
            return None
        if value >> 24 not in (0, prefix):
            self.diagnostics.error(
                "bad-annotation",
                wanted.span,
                f"@id has {value >> 24:#04x} in its highest byte, which tells the kind of object",
                f"write @id({prefix << 24 | value & 0xFFFFFF:#010x}), "
                f"or @id({value & 0xFFFFFF:#x}) for short",
            )
            return None
        value |= prefix << 24
        if value in self._taken:
            self.diagnostics.error(
                "duplicate", wanted.span, f"@id {value:#010x} is given to another object already"
            )
        self._taken.add(value)
        return value

    def settle(self) -> None:
        """Give every object without an id one, in an order that does not depend on the source."""
        for kind, prefix in PREFIXES.items():
            table = self._ids[kind]
            for name in sorted((n for n, i in table.items() if i is None), key=str.encode):
                value = name_hash(name)
                while (prefix << 24 | value & 0xFFFFFF) in self._taken:
                    value += 1
                table[name] = prefix << 24 | value & 0xFFFFFF
                self._taken.add(table[name] or 0)

    def id(self, kind: str, name: str) -> int:
        """An object's id."""
        return self._ids[kind][name] or 0

    def alias(self, name: str) -> str:
        """The shortest suffix that is this object's alone."""
        parts = tuple(name.split("."))
        for start in range(len(parts) - 1, -1, -1):
            if self._suffixes.get(parts[start:], 0) < 2:
                return ".".join(parts[start:])
        return name


# Annotations


def literal(expr: s.Expr) -> int | bool | str | None:
    """The value of an expression of literals in an annotation."""
    if isinstance(expr, s.Number | s.Bool | s.String):
        return expr.value
    if isinstance(expr, s.Unary):
        inner = literal(expr.operand)
        return None if inner is None else folding.unary(expr.op, inner, t.INT)
    if isinstance(expr, s.Binary):
        left, right = literal(expr.left), literal(expr.right)
        if left is None or right is None:
            return None
        try:
            return folding.binary(expr.op, left, right, t.INT)
        except folding.FoldError:
            return None
    return None


def int_annotation(annotations: s.Annotations, name: str) -> int | None:
    """The integer an annotation gives."""
    found = annotation(annotations, name)
    if found is not None and found.args:
        value = literal(found.args[0])
        return int(value) if isinstance(value, int) else None
    return None


def is_hidden(annotations: s.Annotations) -> bool:
    """Whether `@hidden` keeps an object from the control plane."""
    return annotation(annotations, "hidden") is not None


def annotate(message: Any, annotations: s.Annotations, skip: tuple[str, ...] = ()) -> None:
    """Copy annotations, documentation among them, into a message."""
    for each in annotations:
        if each.structured:
            _structured(message.structured_annotations.add(), each)
        elif each.name in ("brief", "description"):
            if each.args and isinstance(each.args[0], s.String):
                setattr(message.doc, each.name, each.args[0].value)
        elif each.name not in ("name", "id", *skip):
            message.annotations.append(
                f"@{each.name}({annotation_text(each)})"
                if each.args or each.tokens
                else f"@{each.name}"
            )


def annotation_text(each: s.Annotation) -> str:
    """An annotation's body as p4c tells it: a space between any two words."""
    if each.args and not each.pairs:
        values = [literal(a) for a in each.args]
        if all(v is not None for v in values):
            return ", ".join(_literal_text(v) for v in values)
    return " ".join(each.tokens)


def _literal_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)


def _structured(message: Any, each: s.Annotation) -> None:
    message.name = each.name
    for arg in each.args:
        _expression(message.expression_list.expressions.add(), literal(arg))
    for key, value in each.pairs:
        pair = message.kv_pair_list.kv_pairs.add()
        pair.key = key
        _expression(pair.value, literal(value))


def _expression(message: Any, value: object) -> None:
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    elif isinstance(value, str):
        message.string_value = value


def numbered(items: Iterable[s.Annotations]) -> Iterator[int]:
    """Ids for parameters and fields: `@id` where given, else the free numbers in order."""
    listed = list(items)
    given = [int_annotation(a, "id") for a in listed]
    taken = {g for g in given if g is not None}
    following = 1
    for wanted in given:
        if wanted is not None:
            yield wanted
            continue
        while following in taken:
            following += 1
        taken.add(following)
        yield following


def value_bytes(value: int, width: int) -> bytes:
    """A number as P4Runtime sends it, padded to its type's width."""
    return (value & ((1 << width) - 1)).to_bytes(max(1, (width + 7) // 8), "big")


class Types:
    """Type specifications, collecting the declared types they need."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.info = info

    def width(self, type_: t.Type) -> int:
        """The width the control plane sees: a translated type's own, 0 for strings."""
        translated = translation(type_)
        if translated is not None:
            return translated if isinstance(translated, int) else 0
        if isinstance(type_, t.ErrorType):
            return 0
        return t.width_of(type_) or 0

    def value(self, value: int, type_: t.Type) -> bytes:
        """A number as the control plane sees it: where that is a string, as decimal digits.

        What a server calls a number is its own affair; digits are what ours reads as a number.
        """
        if translation(type_) == "string":
            return b"%d" % value
        return value_bytes(value, self.width(type_) or 1)

    def name(self, type_: t.Type) -> str | None:
        """The name of a `type` declaration."""
        return type_.name if isinstance(type_, t.NewType) else None

    def spec(self, type_: t.Type) -> Any:
        """A type's specification."""
        made = p4t.P4DataTypeSpec()
        if isinstance(type_, t.Bits):
            if type_.signed:
                made.bitstring.int.bitwidth = type_.width
            else:
                made.bitstring.bit.bitwidth = type_.width
        elif isinstance(type_, t.Varbit):
            made.bitstring.varbit.max_bitwidth = type_.width
        elif isinstance(type_, t.BoolType):
            made.bool.SetInParent()
        elif isinstance(type_, t.ErrorType):
            made.error.SetInParent()
            self.declare(type_)
        elif isinstance(type_, t.Tuple):
            for element in type_.elements:
                made.tuple.members.add().CopyFrom(self.spec(element))
        elif isinstance(type_, t.Stack):
            self._stack(made, type_)
        elif isinstance(type_, t.Named):
            self._named(made, type_)
        return made

    def _stack(self, made: Any, type_: t.Stack) -> None:
        assert isinstance(type_.element, t.Struct)
        name = given_name(type_.element.annotations, type_.element.name)
        if type_.element.kind == "header":
            made.header_stack.header.name = name
            made.header_stack.size = type_.size
        else:
            made.header_union_stack.header_union.name = name
            made.header_union_stack.size = type_.size
        self.declare(type_.element)

    def _named(self, made: Any, type_: t.Named) -> None:
        annotations = getattr(type_, "annotations", ())
        name = given_name(annotations, type_.name)
        if isinstance(type_, t.Struct):
            kind = {
                "struct": made.struct,
                "header": made.header,
                "header_union": made.header_union,
            }[type_.kind]
            kind.name = name
        elif isinstance(type_, t.Enum):
            made.enum.name = name
        elif isinstance(type_, t.SerializableEnum):
            made.serializable_enum.name = name
        elif isinstance(type_, t.NewType):
            made.new_type.name = name
        self.declare(type_)

    def declare(self, type_: t.Type) -> None:
        """Describe a declared type among the message's types."""
        if not isinstance(type_, t.Named):
            if isinstance(type_, t.ErrorType) and not self.info.type_info.HasField("error"):
                self.info.type_info.error.members.extend(self.errors)
            return
        name = given_name(getattr(type_, "annotations", ()), type_.name)
        into = self.info.type_info
        if isinstance(type_, t.NewType) and name not in into.new_types:
            self._new_type(into.new_types[name], type_)
        elif isinstance(type_, t.Enum) and name not in into.enums:
            for member in type_.members:
                into.enums[name].members.add().name = member
        elif isinstance(type_, t.SerializableEnum) and name not in into.serializable_enums:
            made = into.serializable_enums[name]
            width = t.width_of(type_) or 0
            made.underlying_type.bitwidth = width
            for member, value in type_.members.items():
                entry = made.members.add()
                entry.name, entry.value = member, value_bytes(value, width)
        elif isinstance(type_, t.Struct):
            self._struct(name, type_)

    errors: tuple[str, ...] = ()

    def _struct(self, name: str, type_: t.Struct) -> None:
        into = self.info.type_info
        if type_.kind == "struct" and name not in into.structs:
            members = [(given_name(f.annotations, f.name), self.spec(f.type)) for f in type_.fields]
            made = into.structs[name]
            for member, spec in members:
                entry = made.members.add()
                entry.name = member
                entry.type_spec.CopyFrom(spec)
        elif type_.kind == "header" and name not in into.headers:
            header = into.headers[name]
            for member, each in flat_fields(type_):
                part = header.members.add()
                part.name = member
                part.type_spec.CopyFrom(self.spec(t.underlying(each.type)).bitstring)
        elif type_.kind == "header_union" and name not in into.header_unions:
            union = into.header_unions[name]
            for each in type_.fields:
                choice = union.members.add()
                choice.name = given_name(each.annotations, each.name)
                choice.header.CopyFrom(self.spec(each.type).header)

    def _new_type(self, made: Any, type_: t.NewType) -> None:
        annotate(made, type_.annotations, ("p4runtime_translation",))
        found = annotation(type_.annotations, "p4runtime_translation")
        translated = translation(type_)
        if found is None or translated is None:
            made.original_type.CopyFrom(self.spec(t.strip(type_)))
            return
        uri = literal(found.args[0]) if found.args else ""
        made.translated_type.uri = str(uri)
        if isinstance(translated, int):
            made.translated_type.sdn_bitwidth = translated
        else:
            made.translated_type.sdn_string.SetInParent()


def translation(type_: t.Type) -> int | str | None:
    """What the control plane sees instead of a translated type: a width, or 'string'."""
    if not isinstance(type_, t.NewType):
        return None
    found = annotation(type_.annotations, "p4runtime_translation")
    if found is None or len(found.args) < 2:
        return None
    second = found.args[1]
    if isinstance(second, s.Number):
        return second.value
    if isinstance(second, s.TypeName) and isinstance(second.type, s.SizedType):
        width = second.type.width
        return width.value if isinstance(width, s.Number) else None
    return "string"


def flat_fields(type_: t.Struct, prefix: str = "") -> Iterator[tuple[str, t.Field]]:
    """A header's fields, structs inside it flattened."""
    for each in type_.fields:
        base = t.strip(each.type)
        name = prefix + given_name(each.annotations, each.name)
        if isinstance(base, t.Struct):
            yield from flat_fields(base, f"{name}.")
        else:
            yield name, each


class Builder:
    """Builds the message."""

    def __init__(
        self,
        source: c.Program,
        program: ir.Program,
        instances: Instances,
        diagnostics: Diagnostics,
    ) -> None:
        self.source = source
        self.program = program
        self.instances = instances
        self.info = p4i.P4Info()
        self.types = Types(self.info)
        self.types.errors = tuple(source.errors)
        self.diagnostics = diagnostics
        self.symbols = Symbols(diagnostics)
        ordered = list(_in_order(source, program, instances))
        self.tables = [x for x in ordered if isinstance(x, ir.Table)]
        self.objects = [x for x in ordered if isinstance(x, ir.Object)]
        self.actions = [x for x in ordered if isinstance(x, ir.Action)]
        self.headers = [
            x
            for x in source.types
            if isinstance(x, t.Struct)
            and x.kind == "header"
            and annotation(x.annotations, "controller_header")
        ]

    def build(self) -> p4i.P4Info:
        """The message."""
        self._collect()
        self.symbols.settle()
        self._package()
        self._tables()
        self._actions()
        self._objects()
        for header in self.headers:
            self._controller_header(header)
        for value_set in self.program.value_sets:
            self._value_set(value_set)
        self._digests()
        if (
            self.tables
            or self.objects
            or self.headers
            or self.program.digests
            or (any(a.params for a in self.actions) or self.program.calls_externs)
        ):
            self.info.type_info.SetInParent()
        return self.info

    def _collect(self) -> None:
        for table in self.tables:
            self.symbols.add(
                "table", table.name, _id(table.core.decl.annotations if table.core else ())
            )
        for action in self.actions:
            self.symbols.add("action", action.name, _id(action.annotations))
        for each in self.objects:
            kind = _KINDS.get(each.kind)
            if kind is not None:
                self.symbols.add(kind, each.name, _id(each.annotations))
        for header in self.headers:
            self.symbols.add(
                "controller_header",
                given_name(header.annotations, header.name),
                _id(header.annotations),
            )
        for value_set in self.program.value_sets:
            self.symbols.add("value_set", value_set.name, _id(value_set.core.decl.annotations))
        for digest in self.program.digests:
            self.symbols.add("digest", digest.name)

    def _preamble(
        self,
        message: Any,
        kind: str,
        name: str,
        annotations: s.Annotations,
        skip: tuple[str, ...] = (),
    ) -> None:
        message.preamble.id = self.symbols.id(kind, name)
        message.preamble.name = name
        message.preamble.alias = self.symbols.alias(name)
        annotate(message.preamble, annotations, skip)

    def _package(self) -> None:
        main = self.source.main
        if main is None:
            return
        package = self.info.pkg_info
        package.arch = "v1model"
        for each in main.annotations:
            if each.name == "pkginfo":
                for key, value in each.pairs:
                    text = literal(value)
                    if key in ("name", "version", "organization", "contact", "url", "arch") and (
                        isinstance(text, str)
                    ):
                        setattr(package, key, text)
            elif each.name == "platform_property":
                for key, value in each.pairs:
                    number = literal(value)
                    if key in package.platform_properties.DESCRIPTOR.fields_by_name and (
                        isinstance(number, int)
                    ):
                        setattr(package.platform_properties, key, number)
        annotate(package, main.annotations, ("pkginfo", "platform_property"))

    # Tables and actions

    def _tables(self) -> None:
        for table in self.tables:
            core = table.core
            assert core is not None
            if is_hidden(core.decl.annotations):
                continue
            made = self.info.tables.add()
            self._preamble(made, "table", table.name, core.decl.annotations)
            self._match_fields(made, table)
            for ref, action in zip(table.refs, table.actions, strict=True):
                if is_hidden(action.annotations):
                    continue
                entry = made.action_refs.add()
                entry.id = self.symbols.id("action", action.name)
                annotate(entry, ref.annotations)
                if annotation(ref.annotations, "tableonly"):
                    entry.scope = p4i.ActionRef.TABLE_ONLY
                elif annotation(ref.annotations, "defaultonly"):
                    entry.scope = p4i.ActionRef.DEFAULT_ONLY
            self._default(made, table)
            made.size = _declared_size(table)
            self._resources(made, table)
            if core.entries is not None:
                made.is_const_table = core.const_entries
                made.has_initial_entries = bool(core.entries)

    def _match_fields(self, made: Any, table: ir.Table) -> None:
        core = table.core
        assert core is not None
        elements = [k for k in core.key if k.match_kind != "selector"]
        names = {id(k.core): k.name for k in table.keys}
        ids = numbered(k.annotations for k in elements)
        for element, number in zip(elements, ids, strict=True):
            field = made.match_fields.add()
            field.id = number
            field.name = names[id(element)]
            annotate(field, element.annotations)
            type_ = element.expr.type
            field.bitwidth = self.types.width(type_)
            field.match_type = _MATCH[element.match_kind]
            self._type_name(field, type_)

    def _type_name(self, message: Any, type_: t.Type) -> None:
        self.types.declare(type_)
        name = self.types.name(type_)
        if name is None and isinstance(type_, t.Enum):
            name = type_.name
        if name is not None:
            message.type_name.name = name

    def _default(self, made: Any, table: ir.Table) -> None:
        if table.default is None:
            return
        index, data = table.default
        action = table.actions[index]
        if is_hidden(action.annotations):
            return
        number = self.symbols.id("action", action.name)
        if table.default_const:
            made.const_default_action_id = number
        made.initial_default_action.action_id = number
        assert action.origin is not None
        params = [v for v in action.origin.params if not v.direction]
        ids = numbered(v.annotations for v in params)
        for variable, value, param_id in zip(params, data, ids, strict=True):
            argument = made.initial_default_action.arguments.add()
            argument.param_id = param_id
            argument.value = self.types.value(value, variable.type)

    def _resources(self, made: Any, table: ir.Table) -> None:
        if table.implementation is not None:
            made.implementation_id = self.symbols.id("action_profile", table.implementation.name)
        for each, kind in ((table.counter, "direct_counter"), (table.meter, "direct_meter")):
            if each is not None and each.kind == kind:
                made.direct_resource_ids.append(self.symbols.id(kind, each.name))
        if table.timeout:
            made.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL

    def _actions(self) -> None:
        seen: set[str] = set()
        for action in self.actions:
            if action.name in seen or is_hidden(action.annotations):
                continue
            seen.add(action.name)
            made = self.info.actions.add()
            self._preamble(made, "action", action.name, action.annotations)
            assert action.origin is not None
            params = [v for v in action.origin.params if not v.direction]
            if action.called_only:
                params = []
            ids = numbered(v.annotations for v in params)
            for variable, number in zip(params, ids, strict=True):
                param = made.params.add()
                param.id = number
                param.name = given_name(variable.annotations, variable.name)
                annotate(param, variable.annotations)
                if not isinstance(variable.type, t.Enum):
                    param.bitwidth = self.types.width(variable.type)
                self._type_name(param, variable.type)

    # Extern objects

    def _objects(self) -> None:
        for each in self.objects:
            if each.kind in ("action_profile", "action_selector"):
                self._action_profile(each)
            elif each.kind in ("counter", "direct_counter"):
                self._counter(each)
            elif each.kind in ("meter", "direct_meter"):
                self._meter(each)
            elif each.kind == "register":
                self._register(each)

    def _action_profile(self, each: ir.Object) -> None:
        made = self.info.action_profiles.add()
        self._preamble(made, "action_profile", each.name, each.annotations, _PROFILE_ANNOTATIONS)
        made.with_selector = each.kind == "action_selector"
        made.size = int(each.args.get("size", 0))
        if made.with_selector:
            self._group_limits(made, each.annotations)
        users = sorted(table.name for table in self.tables if table.implementation is each)
        made.table_ids.extend(self.symbols.id("table", name) for name in users)

    def _group_limits(self, made: Any, annotations: s.Annotations) -> None:
        group = int_annotation(annotations, "max_group_size")
        if group is not None:
            made.max_group_size = group
        semantics = annotation(annotations, "selector_size_semantics")
        if semantics is None or not semantics.args:
            return
        said = literal(semantics.args[0])
        wanted = said.lower() if isinstance(said, str) else ""
        if wanted not in ("sum_of_members", "sum_of_weights"):
            self.diagnostics.error(
                "bad-annotation",
                semantics.span,
                '@selector_size_semantics takes "sum_of_members" or "sum_of_weights"',
            )
        elif wanted == "sum_of_members":
            made.sum_of_members.SetInParent()
            weight = int_annotation(annotations, "max_member_weight")
            if weight is not None:
                made.sum_of_members.max_member_weight = weight
        else:
            made.sum_of_weights.SetInParent()

    def _counter(self, each: ir.Object) -> None:
        unit = _COUNTER_UNITS.get(str(each.args.get("type")), p4i.CounterSpec.UNSPECIFIED)
        if each.kind == "direct_counter":
            if each.table is None:
                return
            direct = self.info.direct_counters.add()
            self._preamble(direct, "direct_counter", each.name, each.annotations)
            direct.spec.unit = unit
            direct.direct_table_id = self.symbols.id("table", each.table.name)
            return
        made = self.info.counters.add()
        self._preamble(made, "counter", each.name, each.annotations)
        made.spec.unit = unit
        made.size = int(each.args.get("size", 0))
        self._index_type(made, each, 0)

    def _meter(self, each: ir.Object) -> None:
        unit = _METER_UNITS.get(str(each.args.get("type")), p4i.MeterSpec.UNSPECIFIED)
        if each.kind == "direct_meter":
            if each.table is None:
                return
            direct = self.info.direct_meters.add()
            self._preamble(direct, "direct_meter", each.name, each.annotations)
            direct.spec.unit = unit
            direct.direct_table_id = self.symbols.id("table", each.table.name)
            return
        made = self.info.meters.add()
        self._preamble(made, "meter", each.name, each.annotations)
        made.spec.unit = unit
        made.size = int(each.args.get("size", 0))
        self._index_type(made, each, 0)

    def _index_type(self, made: Any, each: ir.Object, position: int) -> None:
        if len(each.type.args) > position:
            self.types.declare(each.type.args[position])
            name = self.types.name(each.type.args[position])
            if name is not None:
                made.index_type_name.name = name

    def _register(self, each: ir.Object) -> None:
        made = self.info.registers.add()
        self._preamble(made, "register", each.name, each.annotations)
        made.size = int(each.args.get("size", 0))
        if each.type.args:
            made.type_spec.CopyFrom(self.types.spec(each.type.args[0]))
        self._index_type(made, each, 1)

    # The rest

    def _controller_header(self, header: t.Struct) -> None:
        if is_hidden(header.annotations):
            return
        found = annotation(header.annotations, "controller_header")
        label = literal(found.args[0]) if found is not None and found.args else header.name
        made = self.info.controller_packet_metadata.add()
        made.preamble.id = self.symbols.id(
            "controller_header", given_name(header.annotations, header.name)
        )
        made.preamble.name = made.preamble.alias = str(label)
        annotate(made.preamble, header.annotations)
        fields = list(flat_fields(header))
        ids = numbered(f.annotations for _, f in fields)
        for (name, field), number in zip(fields, ids, strict=True):
            if is_hidden(field.annotations):
                continue
            metadata = made.metadata.add()
            metadata.id = number
            metadata.name = name
            annotate(metadata, field.annotations)
            metadata.bitwidth = self.types.width(field.type)
            self._type_name(metadata, field.type)

    def _value_set(self, value_set: ir.ValueSet) -> None:
        made = self.info.value_sets.add()
        self._preamble(made, "value_set", value_set.name, value_set.core.decl.annotations)
        made.size = value_set.size
        type_ = t.strip(value_set.core.type)
        if isinstance(type_, t.Struct):
            ids = numbered(f.annotations for f in type_.fields)
            for field, number in zip(type_.fields, ids, strict=True):
                match = made.match.add()
                match.id = number
                match.name = given_name(field.annotations, field.name)
                self._seen_as(match, field.type)
                match.match_type = _MATCH[_field_match(field)]
                annotate(match, field.annotations, ("match",))
        elif isinstance(type_, t.SerializableEnum):
            for number, member in enumerate(type_.members, 1):
                match = made.match.add()
                match.id, match.name = number, member
                match.bitwidth = t.width_of(type_) or 0
                match.match_type = p4i.MatchField.EXACT
        else:
            match = made.match.add()
            match.id = 1
            self._seen_as(match, value_set.core.type)
            match.match_type = p4i.MatchField.EXACT

    def _seen_as(self, match: Any, type_: t.Type) -> None:
        match.bitwidth = self.types.width(type_)
        if isinstance(type_, t.NewType):
            self._type_name(match, type_)

    def _digests(self) -> None:
        seen: set[str] = set()
        for digest in self.program.digests:
            if digest.name in seen:
                continue
            seen.add(digest.name)
            made = self.info.digests.add()
            annotations = digest.type.annotations if isinstance(digest.type, t.Struct) else ()
            self._preamble(made, "digest", digest.name, annotations)
            made.type_spec.CopyFrom(self.types.spec(digest.type))


def _id(annotations: s.Annotations) -> s.Annotation | None:
    return annotation(annotations, "id")


def _field_match(field: t.Field) -> str:
    found = annotation(field.annotations, "match")
    if found is not None and found.args and isinstance(found.args[0], s.Name):
        return found.args[0].name if found.args[0].name in _MATCH else "exact"
    return "exact"


def _declared_size(table: ir.Table) -> int:
    """The size as declared: entries written in the program do not change it here."""
    return table.declared_size


def _in_order(
    source: c.Program, program: ir.Program, instances: Instances
) -> Iterator[ir.Table | ir.Object | ir.Action]:
    """Objects in the order the source declares them, sub-controls in their instance's place."""
    seen: set[int] = set()
    for declared in source.instances:
        known = instances.globals.get(declared)
        if isinstance(known, ir.Object):
            seen.add(id(known))
            yield known
    for block in instances.stages:
        for each in _block(block, top=True):
            if id(each) not in seen:
                seen.add(id(each))
                yield each
    for rest in program.objects:
        if id(rest) not in seen:
            seen.add(id(rest))
            yield rest


def _block(
    block: BlockInstance, *, top: bool = False
) -> Iterator[ir.Table | ir.Object | ir.Action]:
    actions = _used_actions([block, *_descendants(block)] if top else [block])
    if top:
        yield from (a for o, a in actions.items() if o.top_level)
    for local in block.decl.locals:
        if isinstance(local, c.Action) and local in actions:
            yield actions[local]
        elif isinstance(local, c.Table) and local in block.tables:
            table = block.tables[local]
            yield table
            for extern in (table.implementation, table.counter, table.meter):
                if extern is not None and extern.in_place:
                    yield extern
        elif isinstance(local, c.Instance):
            yield from _child(block.children[local])
    for instance, child in block.children.items():
        if instance not in block.decl.locals:
            yield from _child(child)


def _used_actions(blocks: list[BlockInstance]) -> dict[c.Action, ir.Action]:
    """The actions tables list or controls call."""
    actions: dict[c.Action, ir.Action] = {}
    for block in blocks:
        for table in block.tables.values():
            for action in table.actions:
                assert action.origin is not None
                actions.setdefault(action.origin, action)
        for origin, action in block.called.items():
            actions.setdefault(origin, action)
    return actions


def _child(child: BlockInstance | ir.Object) -> Iterator[ir.Table | ir.Object | ir.Action]:
    if isinstance(child, BlockInstance):
        yield from _block(child)
    else:
        yield child


def _descendants(block: BlockInstance) -> list[BlockInstance]:
    found: list[BlockInstance] = []
    for child in block.children.values():
        if isinstance(child, BlockInstance):
            found += [child, *_descendants(child)]
    return found


def build(
    source: c.Program, program: ir.Program, instances: Instances, diagnostics: Diagnostics
) -> p4i.P4Info:
    """The P4Info message of a lowered program; `CompileError` if its ids contradict each other."""
    made = Builder(source, program, instances, diagnostics).build()
    diagnostics.check()
    return made


__all__ = ["build", "join", "name_hash"]
