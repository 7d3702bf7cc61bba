"""Structured values: what registers hold and digests report.

The data plane knows flat lists of integers; a `P4Data` mirrors the P4 type. Both directions walk
the type from P4Info and meet the leaves in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4d, p4t

from switch.p4runtime import values
from switch.p4runtime.errors import invalid, unimplemented
from switch.p4runtime.symbols import Symbols


def build(spec: p4t.P4DataTypeSpec, symbols: Symbols, leaves: Iterator[int]) -> p4d.P4Data:
    """Return the value of type `spec` whose leaves come next."""
    data = p4d.P4Data()
    types = symbols.types
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            data.bitstring = _encode_bits(spec.bitstring, next(leaves))
        case "bool":
            data.bool = bool(next(leaves))
        case "tuple":
            members = (build(member, symbols, leaves) for member in spec.tuple.members)
            data.tuple.members.extend(members)
        case "struct":
            struct = types.structs[spec.struct.name]
            data.struct.members.extend(build(m.type_spec, symbols, leaves) for m in struct.members)
        case "header":
            header = types.headers[spec.header.name]
            data.header.is_valid = True
            bits = (_encode_bits(m.type_spec, next(leaves)) for m in header.members)
            data.header.bitstrings.extend(bits)
        case "serializable_enum":
            data.enum_value = values.encode(next(leaves))
        case "enum":
            data.enum = types.enums[spec.enum.name].members[next(leaves)].name
        case "error":
            data.error = types.error.members[next(leaves)]
        case "new_type":
            names = symbols.names_of(spec.new_type.name)
            if names is None:
                return build(_original(spec, types), symbols, leaves)
            data.bitstring = names.text(next(leaves))
        case kind:
            raise unimplemented(f"values of kind {kind} are not supported")
    return data


def parse(
    spec: p4t.P4DataTypeSpec, symbols: Symbols, data: p4d.P4Data, what: str, bits: int
) -> Iterator[int]:
    """Yield the leaves of a value, refusing one that is not of type `spec`.

    `bits` is what the program has for a value that clients know as a string.
    """
    types = symbols.types
    wanted, given = spec.WhichOneof("type_spec"), data.WhichOneof("data")
    if wanted == "new_type":
        names = symbols.names_of(spec.new_type.name)
        if names is None:
            yield from parse(_original(spec, types), symbols, data, what, bits)
            return
        if given != "bitstring":
            raise invalid(f"{what}: the value must be a string, not a {given or 'nothing'}")
        yield names.number(data.bitstring, bits, what)
        return
    if given != ("enum_value" if wanted == "serializable_enum" else wanted):
        raise invalid(f"{what}: the value must be a {wanted}, not a {given or 'nothing'}")
    match wanted:
        case "bitstring":
            yield _decode_bits(spec.bitstring, data.bitstring, what)
        case "bool":
            yield int(data.bool)
        case "tuple":
            yield from _parse_members(spec.tuple.members, symbols, data.tuple, what, bits)
        case "struct":
            struct = types.structs[spec.struct.name]
            members = [m.type_spec for m in struct.members]
            yield from _parse_members(members, symbols, data.struct, what, bits)
        case "serializable_enum":
            enum = types.serializable_enums[spec.serializable_enum.name]
            yield values.decode(data.enum_value, enum.underlying_type.bitwidth, what)
        case kind:
            raise unimplemented(f"{what}: values of kind {kind} cannot be written")


def _parse_members(
    members: Sequence[p4t.P4DataTypeSpec],
    symbols: Symbols,
    data: p4d.P4StructLike,
    what: str,
    bits: int,
) -> Iterator[int]:
    if len(members) != len(data.members):
        raise invalid(f"{what}: {len(data.members)} members given, the type has {len(members)}")
    for member, value in zip(members, data.members, strict=True):
        yield from parse(member, symbols, value, what, bits)


def _original(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> p4t.P4DataTypeSpec:
    new_type = types.new_types[spec.new_type.name]
    if new_type.HasField("original_type"):
        return new_type.original_type
    bit = p4t.P4BitTypeSpec(bitwidth=new_type.translated_type.sdn_bitwidth)
    return p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=bit))


def _encode_bits(spec: p4t.P4BitstringLikeTypeSpec, number: int) -> bytes:
    if spec.HasField("int"):
        bits = spec.int.bitwidth
        if number >> (bits - 1) == 1:
            number -= 1 << bits
        return values.encode_signed(number)
    return values.encode(number)


def _decode_bits(spec: p4t.P4BitstringLikeTypeSpec, value: bytes, what: str) -> int:
    match spec.WhichOneof("type_spec"):
        case "bit":
            return values.decode(value, spec.bit.bitwidth, what)
        case "int":
            number = values.decode_signed(value, spec.int.bitwidth, what)
            return number & values.all_ones(spec.int.bitwidth)
        case _:
            raise unimplemented(f"{what}: varbit values cannot be written")
