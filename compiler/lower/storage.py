"""Storage: header types, header instances, and the fields that hold local variables.

Scalars of all kinds share one metadata instance called `scalars`, as BMv2 programs customarily
do; headers, stacks and unions become instances of their own.
"""

from __future__ import annotations

from compiler import ir
from compiler import syntax as s
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.instances import annotation, given_name
from compiler.lower.values import (
    HeaderPlace,
    Record,
    StackPlace,
    UnionPlace,
    Val,
    scalar_type,
)

SCALARS = "scalars"


class Storage:
    """Allocates everything data can live in."""

    def __init__(self, program: ir.Program, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self._names: set[str] = {SCALARS, "standard_metadata"}
        self._scalar_names: set[str] = set()
        self._types: dict[str, t.Struct] = {}
        self._next: dict[tuple[int, str], int] = {}
        self._flat: dict[t.Type, dict[str, str]] = {}

    def unique(self, name: str, names: set[str]) -> str:
        """A name not taken yet; the search goes on where the last one for this name ended."""
        if name not in names:
            names.add(name)
            return name
        count = self._next.get((id(names), name), 0)
        while (chosen := f"{name}_{count}") in names:
            count += 1
        self._next[id(names), name] = count + 1
        names.add(chosen)
        return chosen

    def flat_names(self, type_: t.Struct) -> dict[str, str]:
        """What a header's fields are called in its layout, by their dotted paths."""
        found = self._flat.get(type_)
        if found is None:
            found = self._flat[type_] = flat_names(type_)
        return found

    def scalar(self, name: str, type_: t.Type) -> ir.Value:
        """A field of `scalars`; a varbit gets a header of its own."""
        low = scalar_type(type_)
        assert low is not None
        if isinstance(low, t.Varbit):
            return self._varbit(name, low)
        chosen = self.unique(name, self._scalar_names)
        width = t.width_of(low) or 0
        signed = is_signed(low)
        self.program.scalars.append((chosen, width, signed))
        return ir.FieldRef(low, SCALARS, chosen)

    def _varbit(self, name: str, type_: t.Varbit) -> ir.Value:
        header_type = f"$varbit{type_.width}"
        self.program.header_types.setdefault(
            header_type, ir.HeaderType(header_type, (("field", "*", False),), type_.width)
        )
        chosen = self.unique(name, self._names)
        self.program.headers.append(ir.Header(chosen, header_type, True))
        return ir.FieldRef(type_, chosen, "field")

    def allocate(self, name: str, type_: t.Type) -> Val:
        """Room for a local variable of any type."""
        base = t.strip(type_)
        if isinstance(base, t.Struct):
            if base.kind == "struct":
                return Record(
                    base, {f.name: self.allocate(f"{name}.{f.name}", f.type) for f in base.fields}
                )
            if base.kind == "header":
                return self.header(name, base)
            return self.union(name, base)
        if isinstance(base, t.Tuple):
            return Record(
                base,
                {f"f{i}": self.allocate(f"{name}.f{i}", e) for i, e in enumerate(base.elements)},
            )
        if isinstance(base, t.Stack):
            return self.stack(name, base)
        return self.scalar(name, type_)

    def header(self, name: str, type_: t.Struct) -> HeaderPlace:
        """A header instance."""
        chosen = self.unique(name, self._names)
        self.program.headers.append(ir.Header(chosen, self.header_type(type_), False))
        return HeaderPlace(type_, chosen)

    def union(self, name: str, type_: t.Struct) -> UnionPlace:
        """A header union instance and its members."""
        chosen = self.unique(name, self._names)
        self._union_at(chosen, type_)
        return UnionPlace(type_, chosen)

    def _union_at(self, name: str, type_: t.Struct) -> None:
        members = []
        for each in type_.fields:
            assert isinstance(each.type, t.Struct)
            member = f"{name}.{given_name(each.annotations, each.name)}"
            self._names.add(member)
            self.program.headers.append(ir.Header(member, self.header_type(each.type), False))
            members.append(member)
        self.program.unions.append(ir.Union(name, self.union_type(type_), tuple(members)))

    def stack(self, name: str, type_: t.Stack) -> StackPlace:
        """A stack and its elements."""
        chosen = self.unique(name, self._names)
        element = type_.element
        assert isinstance(element, t.Struct)
        is_union = element.kind == "header_union"
        kind = self.union_type(element) if is_union else self.header_type(element)
        for index in range(type_.size):
            if is_union:
                self._union_at(f"{chosen}[{index}]", element)
            else:
                self._names.add(f"{chosen}[{index}]")
                self.program.headers.append(ir.Header(f"{chosen}[{index}]", kind, False))
        self.program.stacks.append(ir.Stack(chosen, kind, type_.size, is_union))
        return StackPlace(type_, chosen)

    # Types

    def _type_name(self, type_: t.Struct) -> str:
        name = given_name(type_.annotations, type_.name)
        if type_.args:
            name += "_" + "_".join(str(a).replace("<", "").replace(">", "") for a in type_.args)
        chosen = name
        count = 0
        while self._types.get(chosen, type_) != type_:
            chosen = f"{name}_{count}"
            count += 1
        self._types[chosen] = type_
        return chosen

    def union_type(self, type_: t.Struct) -> str:
        """The name of a union type's layout."""
        name = self._type_name(type_)
        if name not in self.program.union_types:
            self.program.union_types[name] = tuple(
                (f.name, self.header_type(f.type))
                for f in type_.fields
                if isinstance(f.type, t.Struct)
            )
        return name

    def header_type(self, type_: t.Struct) -> str:
        """The name of a header type's layout, laid out the first time it is asked for."""
        name = self._type_name(type_)
        if name in self.program.header_types:
            return name
        fields: list[tuple[str, int | str, bool]] = []
        names = self.flat_names(type_)
        for dotted, leaf in leaves(type_):
            path = names[dotted]
            low = scalar_type(leaf)
            if isinstance(low, t.Varbit):
                if any(w == "*" for _, w, _ in fields):
                    self._error(
                        type_,
                        f"header {type_} has more than one varbit field",
                        "split it into two headers",
                    )
                fields.append((path, "*", False))
            elif low is not None:
                fields.append((path, t.width_of(low) or 0, is_signed(low)))
        total = t.width_of(type_) or 0
        if total % 8 and type_.kind == "header":
            self._error(
                type_,
                f"header {type_} is {total} bits long, which is not a multiple of 8",
                f"add a padding field of {8 - total % 8} bits",
            )
        varies = any(w == "*" for _, w, _ in fields)
        self.program.header_types[name] = ir.HeaderType(
            name, tuple(fields), total if varies else None
        )
        return name

    def _error(self, type_: t.Struct, message: str, cure: str) -> None:
        span = type_.decl.span if type_.decl else None
        if span is not None:
            self.diagnostics.error("bad-header", span, message, cure)

    # The architecture's own storage

    def standard_metadata(self, type_: t.Struct) -> Record:
        """The metadata every program has, under the names BMv2 knows."""
        fields: list[tuple[str, int | str, bool]] = []
        places: dict[str, Val] = {}
        for each in type_.fields:
            low = scalar_type(each.type)
            assert low is not None
            fields.append((each.name, t.width_of(low) or 0, False))
            places[each.name] = ir.FieldRef(low, "standard_metadata", each.name)
            alias = annotation(each.annotations, "alias")
            if alias is not None and alias.args and isinstance(alias.args[0], s.String):
                self.program.aliases.append((alias.args[0].value, "standard_metadata", each.name))
        self.program.header_types["standard_metadata"] = ir.HeaderType(
            "standard_metadata", tuple(fields)
        )
        return Record(type_, places)

    def headers(self, type_: t.Struct, prefix: str = "") -> Record:
        """The headers parameter: every header an instance named after its field."""
        places: dict[str, Val] = {}
        for each in type_.fields:
            name = prefix + given_name(each.annotations, each.name)
            base = t.strip(each.type)
            if isinstance(base, t.Struct) and base.kind == "struct":
                places[each.name] = self.headers(base, f"{name}.")
            else:
                places[each.name] = self.allocate(name, each.type)
        return Record(type_, places)

    def user_metadata(self, type_: t.Struct) -> Record:
        """The user's metadata, flattened into `scalars` under the name of their type."""
        prefix = type_.name
        nested = any(
            isinstance(t.strip(f.type), t.Struct | t.Tuple) and not (t.is_header(t.strip(f.type)))
            for f in type_.fields
        )
        counter = [0]
        return self._metadata(type_, prefix, "", counter, nested)

    def _metadata(
        self, type_: t.Type, prefix: str, path: str, counter: list[int], nested: bool
    ) -> Record:
        """Fields of the user's metadata, numbered when structures nest, as p4c has them."""
        places: dict[str, Val] = {}
        if isinstance(type_, t.Struct):
            parts = [(f.name, f.type) for f in type_.fields]
        else:
            assert isinstance(type_, t.Tuple)
            parts = [(f"f{i}", e) for i, e in enumerate(type_.elements)]
        for field_name, field_type in parts:
            base = t.strip(field_type)
            here = f"{path}_{field_name}"
            if isinstance(base, t.Tuple) or t.is_struct(base):
                places[field_name] = self._metadata(base, prefix, here, counter, nested)
                continue
            name = f"{here}{counter[0]}" if nested else field_name
            counter[0] += 1
            if scalar_type(base) is not None and not isinstance(base, t.Varbit):
                places[field_name] = self.scalar(f"{prefix}.{name}", field_type)
            else:
                places[field_name] = self.allocate(f"userMetadata.{name}", field_type)
        return Record(type_, places)


def is_signed(type_: t.Type) -> bool:
    """Whether BMv2 is told that a field is signed; it knows no signed field of one bit."""
    return isinstance(type_, t.Bits) and type_.signed and type_.width > 1


def leaves(type_: t.Type, path: str = "") -> list[tuple[str, t.Type]]:
    """The scalar fields of a header type, structs inside it flattened."""
    base = t.strip(type_)
    if isinstance(base, t.Struct):
        found: list[tuple[str, t.Type]] = []
        for each in base.fields:
            name = given_name(each.annotations, each.name)
            found += leaves(each.type, f"{path}.{name}" if path else name)
        return found
    return [(path, type_)]


def flat_names(type_: t.Type) -> dict[str, str]:
    """What a header's fields are called in its layout, by their dotted paths.

    Fields of structs inside a header are numbered, as BMv2 programs customarily have them.
    """
    paths = [path for path, _ in leaves(type_)]
    if not any("." in path for path in paths):
        return {path: path for path in paths}
    return {path: f"_{path.replace('.', '_')}{i}" for i, path in enumerate(paths)}
