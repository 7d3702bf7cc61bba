"""Packets to and from the controller.

On the CPU port a packet carries a header in front; over P4Runtime the header's fields are metadata
by id. Fields are packed in the P4Info's order, most significant bit first.
"""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from switch.p4runtime import values as wire
from switch.p4runtime.errors import RequestError, invalid
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.symbols import Field


class PacketCodec:
    """Takes controller headers off and puts them on."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._in = pipeline.packet_in
        self._out = pipeline.packet_out
        self._in_bits = sum(field.bits for field in self._in)
        self._out_bits = sum(field.bits for field in self._out)

    def packet_in(self, data: bytes) -> p4r.StreamMessageResponse:
        """Return what the CPU port sent as clients receive it."""
        size = (self._in_bits + 7) // 8
        packet = p4r.PacketIn(payload=data[size:])
        header = int.from_bytes(data[:size].ljust(size, b"\0"), "big")
        shift = size * 8
        for field in self._in:
            shift -= field.bits
            value = header >> shift & wire.all_ones(field.bits)
            packet.metadata.add(metadata_id=field.id, value=wire.encode_field(value, field))
        return p4r.StreamMessageResponse(packet=packet)

    def packet_out(self, packet: p4r.PacketOut) -> bytes:
        """Return the bytes that enter at the CPU port."""
        if not self._out:
            if packet.metadata:
                raise invalid("the program has no packet_out header, so no metadata can be given")
            return packet.payload
        given = _by_id(packet.metadata, self._out)
        header = 0
        for field in self._out:
            value = given.get(field.id)
            if value is None:
                raise invalid(f"packet-out metadata {field.id} ({field.name}) is missing")
            try:
                number = wire.decode_field(value, field, f"packet-out metadata {field.name}")
            except RequestError as error:
                raise invalid(error.message) from None
            header = header << field.bits | number
        size = (self._out_bits + 7) // 8
        return (header << size * 8 - self._out_bits).to_bytes(size, "big") + packet.payload


def _by_id(metadata: Iterable[p4r.PacketMetadata], fields: tuple[Field, ...]) -> dict[int, bytes]:
    known = {field.id for field in fields}
    given: dict[int, bytes] = {}
    for item in metadata:
        if item.metadata_id not in known:
            raise invalid(f"no packet-out metadata has id {item.metadata_id}")
        if item.metadata_id in given:
            raise invalid(f"packet-out metadata {item.metadata_id} is given twice")
        given[item.metadata_id] = item.value
    return given
