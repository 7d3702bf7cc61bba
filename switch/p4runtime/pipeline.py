"""A forwarding pipeline config: read, checked against the program it comes with, and bound to it.

The P4Info says what clients call things, the BMv2 JSON says what the data plane calls them; names
join the two. A `Pipeline` is the result: the config as it was sent (it must be read back the
same), the compiled program, and a codec per table and profile, made once so that an update costs
a few dictionary lookups. Of the program's megabytes all switches that run it keep the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from finsy.proto import p4i, p4r
from google.protobuf.message import DecodeError

from params.data import Data
from switch import dataplane as dp
from switch.objects import HeaderInfo
from switch.p4runtime.actions import ActionCodec
from switch.p4runtime.errors import RequestError, invalid
from switch.p4runtime.infer import action_names
from switch.p4runtime.keys import KeyCodec
from switch.p4runtime.names import Names
from switch.p4runtime.ports import Ports
from switch.p4runtime.roles import Owners
from switch.p4runtime.symbols import (
    Action,
    Directory,
    Field,
    KeyField,
    Match,
    Profile,
    Symbols,
    T,
    Table,
    ValueSet,
)

_KIND = {
    Match.EXACT: dp.MatchKind.EXACT,
    Match.LPM: dp.MatchKind.LPM,
    Match.TERNARY: dp.MatchKind.TERNARY,
    Match.OPTIONAL: dp.MatchKind.TERNARY,
    Match.RANGE: dp.MatchKind.RANGE,
}


_PORT_BITS = 9  # of v1model's ports
_ANY_PORT_BITS = 32  # of a number in P4Runtime that stands for one

Named = TypeVar(
    "Named",
    dp.TableInfo,
    dp.ProfileInfo,
    dp.CounterInfo,
    dp.MeterInfo,
    dp.RegisterInfo,
    dp.DigestInfo,
    dp.ValueSetInfo,
)


class TableBinding(Data):
    """A table as both sides know it, with its codecs."""

    symbol: Table
    info: dp.TableInfo
    index: int
    where: str
    key: KeyCodec
    actions: ActionCodec


class ProfileBinding(Data):
    """An action profile as both sides know it."""

    symbol: Profile
    info: dp.ProfileInfo
    index: int
    where: str
    actions: ActionCodec


class Pipeline:
    """A config and everything derived from it."""

    def __init__(
        self,
        config: p4r.ForwardingPipelineConfig,
        program: dp.Program,
        names: dict[str, Names] | None = None,
    ) -> None:
        # A message of its own: parts of one keep all of it alive.
        self.config = p4r.ForwardingPipelineConfig(p4info=config.p4info)
        if config.HasField("cookie"):
            self.config.cookie.CopyFrom(config.cookie)
        sent = config.p4_device_config
        self.device_config = program.source if sent == program.source else sent
        self.program = program
        symbols = self.symbols = Symbols(self.config.p4info, names)
        self.owners = Owners(self.config.p4info)
        self.packet_in = _packet_fields(symbols.packet_in, program, is_sent=True)
        self.packet_out = _packet_fields(symbols.packet_out, program)
        self.ports = _ports(symbols.packet_in, self.packet_in + self.packet_out)
        tables = _by_name(program.tables)
        self._action_names = action_names(program)
        self.tables = {
            table.id: self._bind_table(table, _find("table", tables, table.name))
            for table in symbols.tables
        }
        self.tables_by_index = {table.index: table for table in self.tables.values()}
        profiles = _by_name(program.profiles)
        self.profiles = {
            profile.id: self._bind_profile(profile, _find("action profile", profiles, profile.name))
            for profile in symbols.profiles
        }
        self.profiles_by_index = {profile.index: profile for profile in self.profiles.values()}
        self.counters = _bind("counter", symbols.counters, program.counters)
        self.meters = _bind("meter", symbols.meters, program.meters)
        self.registers = _bind("register", symbols.registers, program.registers)
        self.digests = _bind("digest", symbols.digests, program.digests)
        self.value_sets = _bind("value set", symbols.value_sets, program.value_sets)
        self.value_set_keys = {
            value_set.id: KeyCodec(
                f"value set {value_set.name}",
                _value_set_key(value_set, self.value_sets[value_set.id].width),
            )
            for value_set in symbols.value_sets
        }
        self.shared_registers = {role: self._register_marked(role) for role in dp.Role}
        self.time_registers = self._registers_of_times()
        self.order_tables = {
            order: self._table_marked(order.mark, list(order.key_bits)) for order in dp.Order
        }

    @property
    def cookie(self) -> int | None:
        """The client's cookie, None if it gave none."""
        return self.config.cookie.cookie if self.config.HasField("cookie") else None

    def same_program(self, other: Pipeline) -> bool:
        """Tell whether two configs run the same program, whatever their P4Infos say."""
        return self.program.source == other.program.source

    def _register_marked(self, role: dp.Role) -> int | None:
        """Return the register that the program shares with the switch in a role."""
        found = [self.registers[r.id] for r in self.symbols.registers if role.mark in r.marks]
        if not found:
            return None
        if len(found) > 1:
            raise invalid(f"registers {found[0].name} and {found[1].name} are both {role.mark}")
        least, most = role.bits
        if not least <= found[0].width <= most:
            raise invalid(
                f"register {found[0].name}: {role.mark} needs cells of {least} to {most} bits"
            )
        return found[0].index

    def _registers_of_times(self) -> list[int]:
        """Return those that hold times, and are set back with the program's clock."""
        found = [self.registers[r.id] for r in self.symbols.registers if dp.TIMES in r.marks]
        for register in found:
            if register.width != dp.CLOCK_BITS:
                raise invalid(
                    f"register {register.name}: {dp.TIMES} needs cells of {dp.CLOCK_BITS} bits"
                )
        return [register.index for register in found]

    def _table_marked(self, mark: str, bits: list[int]) -> int | None:
        """Return the table by whose entries queues are served, under an annotation."""
        found = [table for table in self.tables.values() if mark in table.symbol.marks]
        if not found:
            return None
        if len(found) > 1:
            raise invalid(f"{found[0].where} and {found[1].where} are both {mark}")
        key = found[0].info.keys
        fits = [k.width for k in key] == bits and all(k.kind is dp.MatchKind.EXACT for k in key)
        if not fits or found[0].info.profile is not None:
            widths = " and ".join(f"bit<{width}>" for width in bits)
            text = f"{mark} needs a key of {widths}, exact, and no profile"
            raise invalid(f"{found[0].where}: {text}")
        return found[0].index

    def _bind_table(self, symbol: Table, info: dp.TableInfo) -> TableBinding:
        where = f"table {symbol.name}"
        key = KeyCodec(where, _bound_key(where, symbol.key, info.keys))
        actions = ActionCodec(where, self._bind_actions(where, symbol, info))
        return TableBinding(symbol, info, info.index, where, key, actions)

    def _bind_actions(
        self, where: str, symbol: Table, info: dp.TableInfo
    ) -> list[tuple[Action, int]]:
        """Pair the table's actions with its own copies of them in the program."""
        copies = {self.program.actions[index].name: index for index in reversed(info.actions)}
        copies |= {self._action_names[index]: index for index in info.actions}
        pairs = []
        for action in symbol.actions.values():
            index = copies.get(action.name)
            if index is None:
                raise _mismatch(f"{where}: action {action.name} is not in the program")
            params = self.program.actions[index].params
            if len(params) != len(action.params):
                raise _mismatch(f"{where}: action {action.name} takes {len(params)} parameters")
            widths = zip(action.params, params, strict=True)
            bound = tuple(replace(ours, bits=theirs.width) for ours, theirs in widths)
            pairs.append((Action(action.id, action.name, bound), index))
        return pairs

    def _bind_profile(self, symbol: Profile, info: dp.ProfileInfo) -> ProfileBinding:
        where = f"action profile {symbol.name}"
        user = next((t for t in self.tables.values() if t.symbol.profile_id == symbol.id), None)
        actions = self._bind_actions(where, user.symbol, user.info) if user else []
        return ProfileBinding(symbol, info, info.index, where, ActionCodec(where, actions))


def read_device_config(data: bytes) -> bytes:
    """Return the BMv2 JSON in a `p4_device_config`: as it is, or inside a P4DeviceConfig.

    A P4DeviceConfig is `{reassign=1: bool, extras=2: Any, device_data=3: bytes}`; it is the older
    way to hand JSON to BMv2 and no JSON text begins like it.
    """
    if not data:
        raise invalid("p4_device_config is empty; it must hold the program as BMv2 JSON")
    if data.lstrip()[:1] == b"{":
        return data
    inner = _device_data(data)
    if inner is None or inner.lstrip()[:1] != b"{":
        raise invalid("p4_device_config is neither BMv2 JSON nor a P4DeviceConfig that holds it")
    return inner


def _device_data(data: bytes) -> bytes | None:
    """Return field 3 of a serialized P4DeviceConfig."""
    position = 0
    found = None
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == 0:
            _, position = _varint(data, position)
        elif tag & 7 == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                return None
            if tag >> 3 == 3:
                found = data[position : position + length]
            position += length
        else:
            return None
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    return 0, len(data)


def parse_p4info(data: bytes, what: str) -> p4i.P4Info:
    """Read a P4Info file: protobuf text, JSON or binary."""
    from google.protobuf import json_format, text_format

    head = data.lstrip()[:1]
    info = p4i.P4Info()
    try:
        if head == b"{":
            return json_format.Parse(data, info)
        try:
            return text_format.Parse(data, info, allow_unknown_field=True)
        except (text_format.ParseError, UnicodeDecodeError) as error:
            try:
                return p4i.P4Info.FromString(data)
            except DecodeError:
                raise error from None
    except (text_format.ParseError, json_format.ParseError, UnicodeDecodeError) as error:
        raise invalid(f"{what} is not a P4Info: {error}") from None


def _by_name(items: Iterable[Named]) -> dict[str, Named]:
    return {item.name: item for item in items}


def _find(kind: str, items: dict[str, Named], name: str) -> Named:
    item = items.get(name)
    if item is None:
        raise _mismatch(f"{kind} {name} of the P4Info is not in the program")
    return item


def _mismatch(message: str) -> RequestError:
    return invalid(f"{message}; are the P4Info and the JSON from one compilation?")


def _bind(kind: str, symbols: Directory[T], infos: Iterable[Named]) -> dict[int, Named]:
    by_name = _by_name(infos)
    return {symbol.id: _find(kind, by_name, symbol.name) for symbol in symbols}


def _bound_key(
    where: str, fields: tuple[KeyField, ...], keys: tuple[dp.KeyInfo, ...]
) -> tuple[KeyField, ...]:
    """Return the key's fields with the data plane's widths: a translated type may be wider."""
    if len(fields) != len(keys):
        raise _mismatch(f"{where} has {len(fields)} fields in the P4Info, {len(keys)} in the JSON")
    for field, key in zip(fields, keys, strict=True):
        if _KIND[field.match] is not key.kind:
            raise _mismatch(f"{where}: field {field.name} is {key.kind.value} in the JSON")
    return tuple(replace(field, bits=key.width) for field, key in zip(fields, keys, strict=True))


def _packet_fields(
    fields: tuple[Field, ...], program: dp.Program, *, is_sent: bool = False
) -> tuple[Field, ...]:
    """Return a controller header's fields with the program's widths; none if it never has them.

    P4Info tells how clients see them; where a type is translated the header itself has to be
    asked, and P4Info names it by what it carries alone, of which bits that fill up the last byte
    may be left out. A header may be declared to clients and be none of the program's own, or none
    that it sends, as that of SONiC's packets in, which hardware puts in front.
    """
    found = [header for header in program.headers if _carries(header, fields)]
    if not found:
        return () if any(field.type_name for field in fields) else fields
    if is_sent and not any(header.is_emitted for header in found):
        return ()
    return tuple(
        replace(field, bits=own.width) for field, own in zip(fields, found[0].fields, strict=False)
    )


def _carries(header: HeaderInfo, fields: tuple[Field, ...]) -> bool:
    """Tell whether a header has these fields, and nothing after them but to the byte's end."""
    own = header.fields[: len(fields)]
    padding = sum(field.width for field in header.fields[len(fields) :])
    return (
        [field.name for field in own] == [field.name for field in fields]
        and padding < 8
        and all(f.type_name or f.bits == o.width for f, o in zip(fields, own, strict=True))
    )


def _ports(declared: tuple[Field, ...], bound: tuple[Field, ...]) -> Ports:
    """Return how clients name ports: as strings, if such are all names that packets carry.

    No type is said to be the ports'. But ports are what a packet tells its controller of, or is
    told; so if strings of one type are there, and of no other, it is theirs.
    """
    types = {field.type_name: field.names for field in declared + bound if field.names is not None}
    if len(types) != 1:
        return Ports(None, _ANY_PORT_BITS)
    ((type_name, names),) = types.items()
    widths = [field.bits for field in bound if field.type_name == type_name]
    return Ports(names, widths[0] if widths else _PORT_BITS)


def _value_set_key(value_set: ValueSet, width: int) -> tuple[KeyField, ...]:
    """Return a value set's fields with the program's widths.

    The program tells only of how many bits they are together; so what is left by the fields that
    clients see as they are is shared by those of the translated type.
    """
    for field in value_set.key:
        if field.match is Match.RANGE:
            raise invalid(f"value set {value_set.name}: range fields are not supported")
    translated = [field for field in value_set.key if field.type_name]
    if not translated:
        return value_set.key
    left = width - sum(field.bits for field in value_set.key if not field.type_name)
    bits, rest = divmod(left, len(translated))
    if rest or bits <= 0 or len({field.type_name for field in translated}) > 1:
        raise invalid(
            f"value set {value_set.name}: fields of more than one translated type are not supported"
        )
    return tuple(replace(f, bits=bits) if f.type_name else f for f in value_set.key)
