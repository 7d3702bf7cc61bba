"""Keys of tables and value sets, between the wire and the data plane.

On the wire a key is a list of `FieldMatch` in any order from which "don't care" fields are left
out. Inside it is two tuples in the program's order, `values` and `masks`, as `switch.ops.Entry`
wants them: the mask is a prefix length, a ternary mask or a range's high end by the field's kind,
and a field left out is value 0 with the mask that matches everything. Equal keys are thus equal
tuples, whatever their spelling was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from finsy.proto import p4r

from switch.p4runtime import values as wire
from switch.p4runtime.errors import RequestError, invalid
from switch.p4runtime.symbols import KeyField, Match

Masked = tuple[int, int]


class KeyCodec:
    """Reads and writes the keys of one table or value set."""

    def __init__(self, where: str, fields: tuple[KeyField, ...]) -> None:
        self.where = where
        self.fields = fields
        self._count = len(fields)
        self._is_exact = all(field.match is Match.EXACT for field in fields)
        self._readers = {
            field.id: (position, _reader(f"{where}: field {field.name}", field))
            for position, field in enumerate(fields)
        }
        self._omitted = tuple(_omitted_mask(field) for field in fields)
        self._required = sum(
            1 << position for position, field in enumerate(fields) if field.match is Match.EXACT
        )

    def decode(self, matches: Iterable[p4r.FieldMatch]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the values and masks of a key; masks are empty where every field is exact."""
        values = [0] * self._count
        masks = list(self._omitted)
        seen = 0
        for match in matches:
            found = self._readers.get(match.field_id)
            if found is None:
                raise self._unknown(match.field_id)
            position, reader = found
            if seen >> position & 1:
                raise invalid(f"{self.where}: field {self.fields[position].name} is given twice")
            seen |= 1 << position
            values[position], masks[position] = reader(match)
        if self._required & ~seen:
            raise self._missing(seen)
        return tuple(values), () if self._is_exact else tuple(masks)

    def normal_masks(self, masks: tuple[int, ...]) -> tuple[int, ...]:
        """Return masks as `decode` would: none where all fields are exact, ones in exact fields."""
        if self._is_exact:
            return ()
        return tuple(
            omitted if field.match is Match.EXACT else mask
            for field, mask, omitted in zip(self.fields, masks, self._omitted, strict=True)
        )

    def encode(self, values: tuple[int, ...], masks: tuple[int, ...]) -> list[p4r.FieldMatch]:
        """Return a key in canonical form."""
        matches = []
        masks = masks or self._omitted
        for field, value, mask, omitted in zip(
            self.fields, values, masks, self._omitted, strict=True
        ):
            match field.match:
                case Match.EXACT:
                    exact = p4r.FieldMatch.Exact(value=wire.encode_field(value, field))
                    matches.append(p4r.FieldMatch(field_id=field.id, exact=exact))
                case Match.RANGE:
                    if (value, mask) != (0, omitted):
                        both = p4r.FieldMatch.Range(low=wire.encode(value), high=wire.encode(mask))
                        matches.append(p4r.FieldMatch(field_id=field.id, range=both))
                case Match.LPM:
                    if mask:
                        lpm = p4r.FieldMatch.LPM(value=wire.encode(value), prefix_len=mask)
                        matches.append(p4r.FieldMatch(field_id=field.id, lpm=lpm))
                case Match.TERNARY:
                    if mask:
                        ternary = p4r.FieldMatch.Ternary(
                            value=wire.encode(value), mask=wire.encode(mask)
                        )
                        matches.append(p4r.FieldMatch(field_id=field.id, ternary=ternary))
                case Match.OPTIONAL:
                    if mask:
                        optional = p4r.FieldMatch.Optional(value=wire.encode_field(value, field))
                        matches.append(p4r.FieldMatch(field_id=field.id, optional=optional))
        return matches

    def _unknown(self, field_id: int) -> RequestError:
        known = ", ".join(f"{field.id} ({field.name})" for field in self.fields) or "none"
        return invalid(f"{self.where}: no field has id {field_id}; its fields are: {known}")

    def _missing(self, seen: int) -> RequestError:
        missing = [
            field.name
            for position, field in enumerate(self.fields)
            if field.match is Match.EXACT and not seen >> position & 1
        ]
        return invalid(f"{self.where}: exact field {', '.join(missing)} is missing")


def _omitted_mask(field: KeyField) -> int:
    match field.match:
        case Match.RANGE | Match.EXACT:
            return wire.all_ones(field.bits)
        case _:
            return 0


def _reader(what: str, field: KeyField) -> Callable[[p4r.FieldMatch], Masked]:
    if field.names is not None:
        return _read_text(what, field)
    return {
        Match.EXACT: _read_exact,
        Match.LPM: _read_lpm,
        Match.TERNARY: _read_ternary,
        Match.RANGE: _read_range,
        Match.OPTIONAL: _read_optional,
    }[field.match](what, field.bits)


def _wrong_kind(what: str, wanted: Match, match: p4r.FieldMatch) -> RequestError:
    given = match.WhichOneof("field_match_type") or "nothing"
    return invalid(f"{what} matches {wanted.value}, not {given}")


def _read_text(what: str, field: KeyField) -> Callable[[p4r.FieldMatch], Masked]:
    ones = wire.all_ones(field.bits)
    kind = field.match.value

    def read(match: p4r.FieldMatch) -> Masked:
        if match.WhichOneof("field_match_type") != kind:
            raise _wrong_kind(what, field.match, match)
        return wire.decode_field(getattr(match, kind).value, field, what), ones

    return read


def _read_exact(what: str, bits: int) -> Callable[[p4r.FieldMatch], Masked]:
    ones = wire.all_ones(bits)

    def read(match: p4r.FieldMatch) -> Masked:
        value = match.exact.value
        number = int.from_bytes(value, "big")
        if number > ones or not value:
            if not match.HasField("exact"):
                raise _wrong_kind(what, Match.EXACT, match)
            wire.decode(value, bits, what)
        return number, ones

    return read


def _read_lpm(what: str, bits: int) -> Callable[[p4r.FieldMatch], Masked]:
    def read(match: p4r.FieldMatch) -> Masked:
        if not match.HasField("lpm"):
            raise _wrong_kind(what, Match.LPM, match)
        lpm = match.lpm
        number = wire.decode(lpm.value, bits, what)
        length = lpm.prefix_len
        if not 0 < length <= bits:
            cure = "leave the field out to match everything" if length == 0 else f"at most {bits}"
            raise invalid(f"{what}: prefix length {length} is not allowed; {cure}")
        if number & (1 << (bits - length)) - 1:
            raise invalid(f"{what}: 0x{number:x} has bits set beyond its /{length} prefix")
        return number, length

    return read


def _read_ternary(what: str, bits: int) -> Callable[[p4r.FieldMatch], Masked]:
    def read(match: p4r.FieldMatch) -> Masked:
        if not match.HasField("ternary"):
            raise _wrong_kind(what, Match.TERNARY, match)
        number = wire.decode(match.ternary.value, bits, what)
        mask = wire.decode(match.ternary.mask, bits, f"{what}: mask")
        if not mask:
            raise invalid(f"{what}: the mask is zero; leave the field out to match everything")
        if number & ~mask:
            raise invalid(f"{what}: 0x{number:x} has bits set outside its mask 0x{mask:x}")
        return number, mask

    return read


def _read_range(what: str, bits: int) -> Callable[[p4r.FieldMatch], Masked]:
    def read(match: p4r.FieldMatch) -> Masked:
        if not match.HasField("range"):
            raise _wrong_kind(what, Match.RANGE, match)
        low = wire.decode(match.range.low, bits, f"{what}: low end")
        high = wire.decode(match.range.high, bits, f"{what}: high end")
        if low > high:
            raise invalid(f"{what}: the low end {low} is above the high end {high}")
        if low == 0 and high == wire.all_ones(bits):
            raise invalid(f"{what}: the range is everything; leave the field out instead")
        return low, high

    return read


def _read_optional(what: str, bits: int) -> Callable[[p4r.FieldMatch], Masked]:
    ones = wire.all_ones(bits)

    def read(match: p4r.FieldMatch) -> Masked:
        if not match.HasField("optional"):
            raise _wrong_kind(what, Match.OPTIONAL, match)
        return wire.decode(match.optional.value, bits, what), ones

    return read
