"""A flow of a configuration, as the program that sends it is told it.

Rates, sizes and times are the fabric's; the program has them in real time, stretched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message
from snappi import otg_pb2 as otg

from doors.tester.headers import FCS, Packet, laid_out
from doors.tester.models import chosen, value, word, wrong
from doors.tester.site import Place
from params.data import Data

MIN_BYTES = 64
MAX_FLOWS = 1024
MARK_LONG, MARK_SHORT = 16, 6  # bytes: traffic/tester/tester.h
_GAP = 12  # bytes between two frames, which a line's overhead has in it
_IMIX = ((64, 7.0), (570, 4.0), (1518, 1.0))
_FACTORS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}


class Sizes(Data):
    """Of frames with their check sequences."""

    least: int
    most: int
    mean: float
    text: str


class Plan(Data):
    """What one flow comes to."""

    name: str
    tx: str
    rx: tuple[str, ...]  # none: any port
    lines: tuple[str, ...]  # where {id} stands for its number
    mark: int
    is_stored: bool  # latencies begin with a frame's last bit
    frames_per_s: float  # at most, in fabric time


def planned(flow: otg.Flow, places: Mapping[str, Place]) -> Plan:
    """What a flow comes to; `Refused` tells why it comes to nothing."""
    where = f"flow {flow.name}"
    tx, rx = _ends(flow, places, where)
    place = places[tx]
    packet = laid_out(flow.packet, place.ends, where)
    sizes = sizes_of(flow.size, place, where)
    mark = _mark(flow, packet, sizes, where)
    lines = [
        f"flow {{id}} {_class(packet, place)} {mark} {packet.bytes.hex()}",
        *(f"field {{id}} {each.bit} {each.width} {each.how}" for each in packet.varying),
        *(f"mend {{id}} {each}" for each in packet.lengths),
        *([f"mend {{id}} mark 0 0 0 0 0 {packet.trailer}"] if mark else []),
        *(f"mend {{id}} {each}" for each in reversed(packet.sums)),
        f"sizes {{id}} {sizes.text}",
        pace_of(flow, place, where),
        _end(flow.duration, place, where),
    ]
    is_stored = word(flow.metrics.latency, "mode") != "cut_through"
    pace = _frames_per_s(flow.rate, sizes, place)
    return Plan(flow.name, tx, rx, tuple(lines), mark, is_stored, pace)


def repaced(flow: otg.Flow, mark: int, place: Place) -> list[str]:
    """What an update of its rate or sizes comes to."""
    where = f"flow {flow.name}"
    packet, sizes = laid_out(flow.packet, place.ends, where), sizes_of(flow.size, place, where)
    _refuse_short(packet, sizes, mark, where)
    return [f"sizes {{id}} {sizes.text}", pace_of(flow, place, where)]


def _ends(flow: otg.Flow, places: Mapping[str, Place], where: str) -> tuple[str, tuple[str, ...]]:
    if chosen(flow.tx_rx) != "port" or not flow.tx_rx.HasField("port"):
        raise wrong(f"{where}.tx_rx: it names no port")
    ends = flow.tx_rx.port
    rx = (*ends.rx_names, *([ends.rx_name] if ends.HasField("rx_name") else []))
    for name in (ends.tx_name, *rx):
        if name not in places:
            raise wrong(f"{where}.tx_rx.port: there is no port '{name[:60]}'")
    return ends.tx_name, tuple(dict.fromkeys(rx))


def _class(packet: Packet, place: Place) -> int:
    if packet.pfc_queue is not None:
        return packet.pfc_queue
    return place.classes.get(packet.dscp, 0) if packet.dscp is not None else 0


def _mark(flow: otg.Flow, packet: Packet, sizes: Sizes, where: str) -> int:
    """How many bytes of a frame tell whose it is, if it is to be known."""
    wants_times = flow.metrics.latency.enable
    if not flow.metrics.enable:
        _refuse_short(packet, sizes, 0, where)
        return 0
    for mark in (MARK_LONG, MARK_SHORT):
        if packet.at + mark + packet.trailer + FCS <= sizes.least:
            if wants_times and mark != MARK_LONG:
                break
            return mark
    _refuse_short(packet, sizes, MARK_LONG if wants_times else MARK_SHORT, where)
    raise AssertionError


def _refuse_short(packet: Packet, sizes: Sizes, mark: int, where: str) -> None:
    needed = packet.at + mark + packet.trailer + FCS
    if sizes.least < needed:
        parts = [f"headers {packet.at}", f"check sequence {FCS}"]
        parts += [f"what metrics go by {mark}"] * bool(mark)
        parts += [f"what is behind the payload {packet.trailer}"] * bool(packet.trailer)
        raise wrong(
            f"{where}.size: {sizes.least} bytes are too few, it takes {needed}: {', '.join(parts)}"
        )


def sizes_of(size: otg.FlowSize, place: Place, where: str) -> Sizes:
    """Which sizes frames have."""
    match kind := chosen(size):
        case "fixed":
            fixed = value(size, "fixed")
            found = Sizes(fixed, fixed, fixed, _text(kind, fixed, fixed))
        case "increment":
            first, last, step = (value(size.increment, name) for name in ("start", "end", "step"))
            if not step or first > last:
                raise wrong(f"{where}.size.increment: it does not lead from start to end")
            last -= (last - first) % step
            found = Sizes(first, last, (first + last) / 2, _text("steps", first, last, step))
        case "random":
            first, last = value(size.random, "min"), value(size.random, "max")
            if first > last:
                raise wrong(f"{where}.size.random: min is more than max")
            found = Sizes(first, last, (first + last) / 2, _text(kind, first, last))
        case _:
            found = _weighted(size.weight_pairs, where)
    most = place.most_frame + FCS
    if found.least < MIN_BYTES or found.most > most:
        raise wrong(f"{where}.size: frames have from {MIN_BYTES} to {most} bytes here")
    return found


def _text(kind: str, first: int, last: int, step: int = 1) -> str:
    return f"{kind} {max(0, first - FCS)} {max(0, last - FCS)} {step}"


def _weighted(pairs: otg.FlowSizeWeightPairs, where: str) -> Sizes:
    weighted: Sequence[tuple[int, float]] = _IMIX
    if chosen(pairs) == "custom":
        weighted = [(value(pair, "size"), value(pair, "weight")) for pair in pairs.custom]
    total = sum(weight for _, weight in weighted)
    if not total > 0 or total == float("inf") or any(weight < 0 for _, weight in weighted):
        raise wrong(f"{where}.size.weight_pairs: weights are 0 or more, and one of them is more")
    used = [(size, weight) for size, weight in weighted if weight > 0]
    return Sizes(
        min(size for size, _ in used),
        max(size for size, _ in used),
        sum(size * weight for size, weight in used) / total,
        "weighted " + " ".join(f"{max(0, size - FCS)}:{weight:.9g}" for size, weight in used),
    )


def pace_of(flow: otg.Flow, place: Place, where: str) -> str:
    """How quickly frames follow each other."""
    rate, kind = flow.rate, chosen(flow.rate)
    given = value(rate, kind)
    if not given > 0:
        raise wrong(f"{where}.rate.{kind}: it is not more than 0")
    interval = bps = counted = 0.0
    if kind == "pps":
        interval = 1e9 / given * place.dilation
    elif kind == "percentage":
        if given > 100:
            raise wrong(f"{where}.rate.percentage: {given:g} is more than 100")
        bps, counted = given / 100 * place.bps / place.dilation, place.overhead
    else:
        bps, counted = given * _FACTORS[kind] / place.dilation, FCS
    content = getattr(flow.duration, chosen(flow.duration))
    gap = max(0, value(content, "gap") - _GAP)
    delay = 0.0
    if "delay" in content.DESCRIPTOR.fields_by_name and content.HasField("delay"):
        delay = _lasting(content.delay, place)
    return (
        f"pace {{id}} {interval:.17g} {bps:.17g} {int(counted)} "
        f"{_of_bytes(gap, place):.17g} {delay:.17g}"
    )


def _frames_per_s(rate: otg.FlowRate, sizes: Sizes, place: Place) -> float:
    kind = chosen(rate)
    given = value(rate, kind)
    line = place.bps / 8 / (sizes.mean - FCS + place.overhead)
    if kind == "pps":
        return float(min(given, line))
    if kind == "percentage":
        return float(given / 100 * line)
    return float(min(given * _FACTORS[kind] / 8 / sizes.mean, line))


def _end(duration: otg.FlowDuration, place: Place, where: str) -> str:
    """When a flow is through."""
    packets, is_bursts, bursts, pause, lasts = 0, 0, 0, 0.0, 0.0
    match chosen(duration):
        case "fixed_packets":
            packets = value(duration.fixed_packets, "packets")
        case "fixed_seconds":
            seconds = value(duration.fixed_seconds, "seconds")
            lasts = seconds * 1e9 * place.dilation
            if not 0 < seconds < 1e9:
                raise wrong(f"{where}.duration.fixed_seconds: {seconds:g} s are none")
        case "burst":
            burst = duration.burst
            packets, is_bursts, bursts = value(burst, "packets"), 1, value(burst, "bursts")
            if burst.HasField("inter_burst_gap"):
                pause = _lasting(burst.inter_burst_gap, place)
    if chosen(duration) in ("fixed_packets", "burst") and not packets:
        raise wrong(f"{where}.duration.{chosen(duration)}: packets is 0")
    return f"end {{id}} {packets} {is_bursts} {bursts} {pause:.17g} {lasts:.17g}"


def _lasting(given: Message, place: Place) -> float:
    """A pause in real nanoseconds, however it is said."""
    kind = chosen(given)
    amount = float(value(given, kind))
    if not 0 <= amount < 1e15:
        raise wrong(f"{given.DESCRIPTOR.name}.{kind}: {amount:g} is no time")
    if kind == "bytes":
        return _of_bytes(amount, place)
    return amount * place.dilation * (1000 if kind == "microseconds" else 1)


def _of_bytes(count: float, place: Place) -> float:
    return count * 8e9 * place.dilation / place.bps
