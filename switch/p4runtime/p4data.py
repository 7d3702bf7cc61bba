"""Structured values: what registers hold and digests report.

The data plane knows flat lists of integers; a `P4Data` mirrors the P4 type. Both directions walk
the type from P4Info and meet the leaves in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finsy.proto import p4d, p4t

from switch.p4runtime import values
from switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def build(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, leaves: Iterator[int]) -> p4d.P4Data:
    """Return the value of type `spec` whose leaves come next."""
    data = p4d.P4Data()
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            data.bitstring = _encode_bits(spec.bitstring, next(leaves))
        case "bool":
            data.bool = bool(next(leaves))
        case "tuple":
            members = (build(member, types, leaves) for member in spec.tuple.members)
            data.tuple.members.extend(members)
        case "struct":
            struct = types.structs[spec.struct.name]
            data.struct.members.extend(build(m.type_spec, types, leaves) for m in struct.members)
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
            return build(_original(spec, types), types, leaves)
        case kind:
            raise unimplemented(f"values of kind {kind} are not supported")
    return data


def parse(
    spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, data: p4d.P4Data, what: str
) -> Iterator[int]:
    """Yield the leaves of a value, refusing one that is not of type `spec`."""
    wanted, given = spec.WhichOneof("type_spec"), data.WhichOneof("data")
    if wanted == "new_type":
        yield from parse(_original(spec, types), types, data, what)
        return
    if given != ("enum_value" if wanted == "serializable_enum" else wanted):
        raise invalid(f"{what}: the value must be a {wanted}, not a {given or 'nothing'}")
    match wanted:
        case "bitstring":
            yield _decode_bits(spec.bitstring, data.bitstring, what)
        case "bool":
            yield int(data.bool)
        case "tuple":
            yield from _parse_members(spec.tuple.members, types, data.tuple, what)
        case "struct":
            struct = types.structs[spec.struct.name]
            members = [m.type_spec for m in struct.members]
            yield from _parse_members(members, types, data.struct, what)
        case "serializable_enum":
            enum = types.serializable_enums[spec.serializable_enum.name]
            yield values.decode(data.enum_value, enum.underlying_type.bitwidth, what)
        case kind:
            raise unimplemented(f"{what}: values of kind {kind} cannot be written")


def _parse_members(
    members: Sequence[p4t.P4DataTypeSpec],
    types: p4t.P4TypeInfo,
    data: p4d.P4StructLike,
    what: str,
) -> Iterator[int]:
    if len(members) != len(data.members):
        raise invalid(f"{what}: {len(data.members)} members given, the type has {len(members)}")
    for member, value in zip(members, data.members, strict=True):
        yield from parse(member, types, value, what)


def _original(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> p4t.P4DataTypeSpec:
    new_type = types.new_types[spec.new_type.name]
    if new_type.HasField("original_type"):
        return new_type.original_type
    bits = new_type.translated_type.sdn_bitwidth
    if not bits:
        raise unimplemented(f"type {spec.new_type.name} is translated to strings")
    bit = p4t.P4BitTypeSpec(bitwidth=bits)
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
