"""A host's RoCEv2 adapter to read: what `core/` does in C, with scapy's packets.

It carries out the same plans, told in the words of `core/script.h`, and speaks the same protocol on
the wire, so that it may face an adapter in C. Like that one it owns no clock and no socket: whoever
hosts it hands in frames and the time, in fabric ns, and gets frames through a callback.

A transfer starts when those it waits for have ended and its delay is over. A message that is sent
is cut into packets, numbered one after the other on its queue pair:

        una                next              posted
    ─────┼──────────────────┼──────────────────┼──────►  sequence numbers
    done │ in flight        │ not yet sent     │

The receiver takes packets in their order and acknowledges when it is asked to; what comes before
its turn it refuses, once, and the sender goes back to the packet that is missing (go-back-n). So it
does when an answer stays out for too long. It stops when it is told to by a pause frame. What the
C adapter can do beyond that (other recoveries, congestion control, slow receivers) it cannot.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from heapq import heappop, heappush

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from params.data import Data
from traffic.congestion import CONTROLS
from traffic.endpoint import EndpointError
from traffic.frames import IP_BYTES, Opcode, icrc
from traffic.layers import AETH, BTH, RETH
from traffic.messages import (
    ACK,
    NAK_INVALID_REQUEST,
    NAK_OUT_OF_SEQUENCE,
    NAK_REMOTE_ACCESS,
    NAK_REMOTE_OPERATION,
    answer_frame,
    data_frame,
    headers,
    network_of,
    packets_of,
    pattern,
    set_traffic_class,
    traffic_class,
)

_PAUSE_QUANTUM_BITS = 512
_ETHERNET_BYTES, _ICRC_BYTES = 14, 4
_MIN_BYTES = 8 + 12 + _ICRC_BYTES  # behind IP
_PSNS = 1 << 24
_FIRST = _PSNS  # one wrap above zero, so that an old PSN is a small number and no negative one
_WRITES = frozenset(map(int, Opcode))
_REFUSALS = {
    NAK_INVALID_REQUEST: "remote-invalid-request",
    NAK_REMOTE_ACCESS: "remote-access",
    NAK_REMOTE_OPERATION: "remote-operation",
}


class _Settings(Data):
    """What of an adapter's settings it obeys; defaults are those of `core/endpoint.c`."""

    link_bps: int
    overhead_bytes: int = 24
    mtu: int = 4096
    window: int = 512
    ack_every: int = 16
    rto: int = 4096 << 20
    retry_limit: int = 7
    catch_up: int = 1
    control_priority: int = 6
    acks: str = "data"


# What must be so, and what matters only to an adapter that can do more.
_ONLY = {"transport": "roce", "payload": "pattern", "recovery": "go-back-n"}
_WITHOUT_EFFECT = (
    *("ip", "qps", "transfers", "edges", "reorder", "multipath", "int-port", "base-rtt"),
    *(f"{control}-" for control in CONTROLS),  # whose parameters begin so
    *("entropy", "entropies", "last-hop-dscp", "has-trimming", "hops", "seed", "follow-rate"),
)


class _Transfer(Data, frozen=False, eq=False):
    """A message at one of its ends, or a computation."""

    id: int
    kind: str  # send, receive or compute
    queue_pair: _QueuePair | None
    size: int
    delay: int
    waits_for: int = 0
    waiting: list[_Transfer] = field(default_factory=list)  # for this one
    state: str = "waiting"
    start: int | None = None
    end: int | None = None
    first: int = 0  # sequence number of its first packet
    packets: int = 0
    received: int = 0  # bytes in place

    def line(self) -> str:
        """What became of it."""
        times = ("-" if at is None else str(at) for at in (self.start, self.end))
        return f"transfer {self.id} {self.kind} {self.state} {' '.join(times)}"


class _QueuePair(Data, frozen=False, eq=False):
    """One end of a connection."""

    number: int
    remote: int
    priority: int
    data: Packet  # headers of what is sent, up to UDP
    control: Packet
    error: str | None = None
    # As a sender:
    messages: deque[_Transfer] = field(default_factory=deque)  # not yet acknowledged whole
    una: int = _FIRST
    next: int = _FIRST
    sent: int = _FIRST  # the furthest that next ever was
    posted: int = _FIRST
    since_request: int = 0  # packets, since an answer was asked for
    requested: int = _FIRST  # an answer was asked for to all before
    deadline: int | None = None  # for that answer
    retries: int = 0
    # As a receiver:
    expected: int = _FIRST
    writing: _Transfer | None = None
    owes: int | None = None  # an answer with this syndrome
    has_refused: bool = False  # what comes before its turn, and it has not come since
    msn: int = 0  # messages received

    def message_at(self, number: int) -> _Transfer:
        """The message a packet is of."""
        return next(m for m in self.messages if number < m.first + m.packets)


class ScapyEndpoint:
    """One host's adapter and its part of a schedule."""

    def __init__(self, transmit: Callable[[bytes, int], None]) -> None:
        self._transmit = transmit  # a frame, whose first bit leaves at that time
        self._settings: _Settings | None = None
        self._queue_pairs: dict[int, _QueuePair] = {}
        self._transfers: dict[int, _Transfer] = {}
        self._due: list[tuple[int, int]] = []  # a heap: when which transfer starts
        self._turns: deque[_QueuePair] = deque()
        self.open = 0  # transfers that have neither ended nor failed
        self._free_at = 0  # the wire
        self._paused_until = dict.fromkeys(range(8), 0)
        self._paused_ns = Counter[int]()
        self._counters = Counter(dict.fromkeys(("tx_packets", "rx_packets"), 0))
        self.errors: list[str] = []  # lines about queue pairs, for whoever hosts it to say
        self.news: list[str] = []  # what begins and ends, for whoever hosts it to write down

    # --- what it is told ------------------------------------------------------------------------

    def read(self, line: str) -> None:
        """Take one line of `core/script.h`; an EndpointError says what is wrong with it."""
        verb, *words = line.split()
        try:
            match verb:
                case "endpoint":
                    self._settings = _settings(dict(_pair(word) for word in words))
                case "qp":
                    self._add_queue_pair(dict(_pair(word) for word in words))
                case "send" | "receive" | "compute":
                    self._add_transfer(verb, {name: int(v) for name, v in map(_pair, words)})
                case "after":
                    later, *earlier = (self._transfers[int(word)] for word in words)
                    later.waits_for += len(earlier)
                    for transfer in earlier:
                        transfer.waiting.append(later)
                case _:
                    raise EndpointError(f"there is no line '{verb}'")
        except (KeyError, ValueError) as error:
            raise EndpointError(f"'{line.strip()[:80]}' cannot be understood: {error}") from None

    @property
    def settings(self) -> _Settings:
        """What it was set to."""
        if self._settings is None:
            raise EndpointError("the endpoint comes first")
        return self._settings

    def set_link(self, link_bps: int) -> None:
        """Let its link have another rate from now on."""
        self._settings = replace(self.settings, link_bps=link_bps)

    def _add_queue_pair(self, fields: dict[str, str]) -> None:
        if fields.get("cc", "none") != "none":
            raise EndpointError(f"the scapy endpoint has no congestion control '{fields['cc']}'")
        pair = _QueuePair(
            number=int(fields["number"]),
            remote=int(fields["remote"]),
            priority=int(fields.get("priority", 3)),
            data=headers(bytes.fromhex(fields["data"])),
            control=headers(bytes.fromhex(fields["control"])),
        )
        pair.una = pair.next = pair.sent = pair.posted = _FIRST + int(fields.get("psn", 0))
        pair.requested = pair.una
        pair.expected = _FIRST + int(fields.get("remote-psn", 0))
        if self.settings.acks == "data":
            set_traffic_class(pair.control, traffic_class(pair.data))
        self._queue_pairs[pair.number] = pair
        self._turns.append(pair)

    def _add_transfer(self, kind: str, fields: dict[str, int]) -> None:
        pair = None if kind == "compute" else self._queue_pairs[fields["qp"]]
        size, delay = fields.get("size", 0), fields.get("delay", 0)
        self._transfers[fields["id"]] = _Transfer(fields["id"], kind, pair, size, delay)
        self.open += 1

    # --- the plan -------------------------------------------------------------------------------

    def start(self, now: int) -> None:
        """Begin: what waits for nothing does so now."""
        for transfer in self._transfers.values():
            if not transfer.waits_for:
                self._ready(transfer, now)

    def _ready(self, transfer: _Transfer, now: int) -> None:
        """It waits for nobody any more; a receive has nothing to start."""
        if transfer.kind == "compute":
            transfer.start = now
        if transfer.kind != "receive":
            heappush(self._due, (now + transfer.delay, transfer.id))

    def _start_due(self, now: int) -> None:
        while self._due and self._due[0][0] <= now:
            transfer = self._transfers[heappop(self._due)[1]]
            if transfer.kind == "compute":
                self._ended(transfer, now)
            else:
                self._post(transfer, now)

    def _ended(self, transfer: _Transfer, now: int) -> None:
        self._close(transfer, "done", now)
        if transfer.kind == "receive":
            self.news.append(f"ended {transfer.id} {now}")
        for later in transfer.waiting:
            later.waits_for -= 1
            if not later.waits_for:
                self._ready(later, now)

    def _failed(self, pair: _QueuePair, error: str, now: int) -> None:
        """A queue pair that errs sends no more."""
        if pair.error:
            return
        pair.error = error
        self._counters["qp_errors"] += 1
        self.errors.append(f"qp-error {pair.number} {error} {now}")
        for message in pair.messages:
            self._close(message, "failed", now)
        pair.messages.clear()
        pair.una = pair.next = pair.posted
        pair.deadline = None

    def _close(self, transfer: _Transfer, state: str, now: int) -> None:
        transfer.state, transfer.end = state, now
        self.open -= 1

    # --- sending --------------------------------------------------------------------------------

    def service(self, now: int) -> int | None:
        """Send what may be sent; when to call again at the latest, if anything is waited for."""
        self._start_due(now)
        self._time_out(now)
        while self._free_at <= now and (frame := self._next_frame(now)):
            # Only lateness is made up for, not time in which there was nothing to send.
            at = self._free_at if now - self._free_at < self.settings.catch_up else now
            self._free_at = at + self.wire_ns(len(frame))
            self._counters["tx_packets"] += 1
            self._counters["tx_bytes"] += len(frame)
            self._transmit(frame, at)
        times = [at for at, _ in self._due[:1]]
        for pair in self._turns:
            if pair.deadline is not None:
                times.append(pair.deadline)
            if pair.owes is not None:
                times.append(max(self._free_at, self._paused_until[self._answer_priority(pair)]))
            if self._may_send(pair):
                times.append(max(self._free_at, self._paused_until[pair.priority]))
        return min(times, default=None)

    def wire_ns(self, length: int) -> int:
        """How long a frame takes to pass."""
        bits = 8 * (length + self.settings.overhead_bytes)
        return -(-bits * 10**9 // self.settings.link_bps)

    def _next_frame(self, now: int) -> bytes | None:
        """Answers first; then queue pairs in turn."""
        for pair in self._turns:
            if pair.owes is not None and self._paused_until[self._answer_priority(pair)] <= now:
                return self._answer(pair)
        for _ in range(len(self._turns)):
            pair = self._turns[0]
            self._turns.rotate(-1)
            if self._may_send(pair) and self._paused_until[pair.priority] <= now:
                return self._data(pair, now)
        return None

    def _answer_priority(self, pair: _QueuePair) -> int:
        return pair.priority if self.settings.acks == "data" else self.settings.control_priority

    def _may_send(self, pair: _QueuePair) -> bool:
        return pair.next < pair.posted and pair.next - pair.una < self.settings.window

    def _post(self, message: _Transfer, now: int) -> None:
        pair = message.queue_pair
        assert pair is not None
        message.state, message.start = "started", now
        self.news.append(f"began {message.id} {now}")
        if pair.error:
            self._close(message, "failed", now)
            return
        message.first = pair.posted
        message.packets = packets_of(message.size, self.settings.mtu)
        pair.posted += message.packets
        pair.messages.append(message)

    def _data(self, pair: _QueuePair, now: int) -> bytes:
        number, settings = pair.next, self.settings
        message = pair.message_at(number)
        index = number - message.first
        is_again = number < pair.sent
        wants_answer = (
            index + 1 == message.packets
            or pair.since_request + 1 >= settings.ack_every
            or number + 1 - pair.una >= settings.window
        )
        pair.next += 1
        pair.sent = max(pair.sent, pair.next)
        pair.since_request = 0 if wants_answer else pair.since_request + 1
        if wants_answer:
            pair.requested = max(pair.requested, pair.next)
            if pair.deadline is None:
                self._await_answer(pair, now)
        size = min(settings.mtu, message.size - index * settings.mtu)
        for name in ("tx_data", "retransmitted") if is_again else ("tx_data",):
            self._counters[f"{name}_packets"] += 1
            self._counters[f"{name}_bytes"] += size
        return data_frame(
            pair.data,
            pair.remote,
            number,
            message=message.id,
            size=message.size,
            index=index,
            mtu=settings.mtu,
            wants_answer=wants_answer,
        )

    def _answer(self, pair: _QueuePair) -> bytes:
        """What it owes: an ACK of the last packet that came in turn, or a NAK of the next one."""
        syndrome, pair.owes = pair.owes, None
        assert syndrome is not None
        is_ack = syndrome == ACK
        self._counters["tx_acks" if is_ack else "tx_naks"] += 1
        number = pair.expected - is_ack
        return answer_frame(pair.control, pair.remote, number, syndrome=syndrome, msn=pair.msn)

    def _await_answer(self, pair: _QueuePair, now: int) -> None:
        pair.deadline = now + self.settings.rto if self.settings.rto else None

    def _time_out(self, now: int) -> None:
        for pair in self._turns:
            if pair.deadline is None or pair.deadline > now:
                continue
            pair.deadline = None
            if pair.error or pair.una >= pair.sent:
                continue
            if self._paused_until[pair.priority] > now:  # no silence of the peer's
                self._await_answer(pair, now)
                continue
            self._counters["local_ack_timeout_err"] += 1
            pair.retries += 1
            if pair.retries > self.settings.retry_limit:
                self._failed(pair, "retry-exceeded", now)
                continue
            self._await_answer(pair, now)
            self._go_back(pair)

    def _go_back(self, pair: _QueuePair) -> None:
        pair.next = pair.una
        pair.since_request = 0

    # --- receiving ------------------------------------------------------------------------------

    def receive(self, frame: bytes, now: int) -> None:
        """A frame came; any bytes are fine."""
        self._counters["rx_packets"] += 1
        self._counters["rx_bytes"] += len(frame)
        if len(frame) < _ETHERNET_BYTES:
            self._counters["rx_other"] += 1
            return
        packet = Ether(frame)
        if packet.haslayer(MACControlClassBasedFlowControl):
            self._pause(packet[MACControlClassBasedFlowControl], now)
        elif not packet.haslayer(BTH):
            self._counters["rx_other"] += 1
        elif not _is_sound(packet):
            self._counters["rx_icrc_errors"] += 1
        else:
            self._transport(packet, now)

    def _pause(self, pause: Packet, now: int) -> None:
        """Stand still, class by class, for so many quanta; none of them: go on."""
        self._counters["rx_pfc_frames"] += 1
        for priority in range(8):
            if not getattr(pause, f"c{priority}_enabled"):
                continue
            bits = getattr(pause, f"c{priority}_pause_time") * _PAUSE_QUANTUM_BITS
            until = now + bits * 10**9 // self.settings.link_bps
            before = self._paused_until[priority]
            if bits and before <= now:
                self._counters["rx_pause_transitions"] += 1
            self._paused_ns[priority] += until - max(before, now)
            self._paused_until[priority] = until

    def _transport(self, packet: Packet, now: int) -> None:
        bth = packet[BTH]
        pair = self._queue_pairs.get(bth.dqpn)
        if pair is None or pair.error or network_of(packet).src != network_of(pair.data).dst:
            self._counters["rx_no_queue_pair"] += 1
        elif bth.haslayer(AETH):
            self._answered(pair, bth, now)
        elif bth.opcode in _WRITES:
            self._counters["np_ecn_marked_packets"] += traffic_class(packet) & 3 == 3
            self._written(pair, bth, now)
        else:
            self._counters["rx_other"] += 1

    def _answered(self, pair: _QueuePair, bth: Packet, now: int) -> None:
        syndrome, number = bth[AETH].syndrome, _unwrapped(bth.psn, pair.una)
        if syndrome in _REFUSALS:
            self._failed(pair, _REFUSALS[syndrome], now)
        elif syndrome == NAK_OUT_OF_SEQUENCE:
            self._counters["packet_seq_err"] += 1
            if pair.una <= number < pair.sent:
                pair.retries = 0
                self._acknowledge(pair, number, now)
                self._go_back(pair)
        else:
            self._counters["rx_acks"] += 1
            if number < pair.sent:
                self._acknowledge(pair, number + 1, now)

    def _acknowledge(self, pair: _QueuePair, upto: int, now: int) -> None:
        """Everything before has arrived."""
        if upto <= pair.una:
            return
        pair.una = upto
        pair.next = max(pair.next, upto)
        pair.retries = 0
        pair.deadline = None
        if pair.una < pair.requested:
            self._await_answer(pair, now)
        while pair.messages and pair.messages[0].first + pair.messages[0].packets <= upto:
            self._counters["messages_sent"] += 1
            self._ended(pair.messages.popleft(), now)

    def _written(self, pair: _QueuePair, bth: Packet, now: int) -> None:
        """A packet of a message: in its turn, again, or too early."""
        number = _unwrapped(bth.psn, pair.expected)
        data = bth[Raw].load if bth.haslayer(Raw) else b""
        data = data[: len(data) - bth.padcount]
        if number == pair.expected:
            self._place(pair, bth, data, now)
            return
        self._counters["discarded_bytes"] += len(data)
        if number < pair.expected:
            self._counters["duplicate_request"] += 1
            pair.owes = ACK if pair.owes is None else pair.owes
            return
        self._counters["out_of_sequence"] += 1
        if not pair.has_refused:
            pair.has_refused = True
            pair.owes = NAK_OUT_OF_SEQUENCE

    def _place(self, pair: _QueuePair, bth: Packet, data: bytes, now: int) -> None:
        """Put what came in its turn in its place; whatever is wrong with it ends the connection."""
        opcode = Opcode(bth.opcode)
        if opcode.starts and bth.haslayer(RETH) and pair.writing is None:
            pair.writing = self._named(pair, bth[RETH])
            if pair.writing is None:
                self._refuse(pair, NAK_REMOTE_ACCESS, "local-protection", now)
                return
        message = pair.writing
        whole = message.received + len(data) if message else 0
        full = message is not None and (
            whole == message.size
            if opcode.ends
            else len(data) == self.settings.mtu and whole < message.size
        )
        if message is None or not full or opcode.starts is not (message.received == 0):
            self._refuse(pair, NAK_INVALID_REQUEST, "local-invalid-request", now)
            return
        if data != pattern(message.id, message.received, len(data)):
            self._refuse(pair, NAK_REMOTE_OPERATION, "local-data", now)
            return
        message.received = whole
        self._counters["rx_data_packets"] += 1
        self._counters["rx_data_bytes"] += len(data)
        pair.expected += 1
        pair.has_refused = False
        if bth.ackreq:
            pair.owes = ACK
        elif pair.owes == NAK_OUT_OF_SEQUENCE:
            pair.owes = None
        if opcode.ends:
            pair.writing = None
            pair.msn += 1
            self._counters["messages_received"] += 1
            self._ended(message, now)

    def _named(self, pair: _QueuePair, reth: Packet) -> _Transfer | None:
        """The message that a RETH names, if the peer may write it."""
        message = self._transfers.get(reth.rkey)
        if message is None or message.kind != "receive" or message.queue_pair is not pair:
            return None
        is_whole = reth.va == 0 and reth.dmalen == message.size
        return message if is_whole and message.state != "done" else None

    def _refuse(self, pair: _QueuePair, syndrome: int, error: str, now: int) -> None:
        self._failed(pair, error, now)
        pair.owes = syndrome

    # --- what became of it ----------------------------------------------------------------------

    def report(self, now: int) -> Iterator[str]:
        """Transfers, counters and pauses, in the words of `core/script.h`."""
        for transfer in self._transfers.values():
            yield transfer.line()
        for name, value in self._counters.items():
            yield f"counter {name} {value}"
        for priority, granted_ns in self._paused_ns.items():
            paused_ns = granted_ns - max(0, self._paused_until[priority] - now)
            if paused_ns:
                yield f"paused {priority} {paused_ns}"


def _pair(word: str) -> tuple[str, str]:
    name, separator, value = word.partition("=")
    if not separator:
        raise ValueError(f"'{word}' is not key=value")
    return name, value


def _settings(fields: dict[str, str]) -> _Settings:
    """An `endpoint` line's; what it cannot do is refused."""
    obeyed = {}
    for name, value in fields.items():
        key = name.replace("-", "_")
        if name in _ONLY and value != _ONLY[name]:
            raise EndpointError(f"the scapy endpoint has no {name} but {_ONLY[name]}")
        if key in _Settings.__dataclass_fields__:
            obeyed[key] = value if key == "acks" else int(value)
        elif name not in _ONLY and not name.startswith(_WITHOUT_EFFECT):
            raise EndpointError(f"the scapy endpoint knows nothing of {name}")
    return _Settings(**obeyed)  # type: ignore[arg-type]


def _unwrapped(psn: int, near: int) -> int:
    """The sequence number nearest to another whose low 24 bits are a PSN."""
    ahead = (psn - near) % _PSNS
    return near + ahead if ahead < _PSNS // 2 else near + ahead - _PSNS


def _is_sound(packet: Packet) -> bool:
    """Whether the packet is whole, and its ICRC the right one."""
    network = network_of(packet)
    if network.version != (6 if isinstance(network, IPv6) else 4):
        return False
    length = network.len if network.version == 4 else IP_BYTES[6] + network.plen
    covered = packet.original[_ETHERNET_BYTES:][:length]
    sent = int.from_bytes(covered[-_ICRC_BYTES:], "little")
    is_whole = len(covered) >= IP_BYTES[network.version] + _MIN_BYTES
    return is_whole and icrc(covered[:-_ICRC_BYTES]) == sent
