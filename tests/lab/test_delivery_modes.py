"""UET's modes of delivery and its headers, as results tell of them, against what textbooks have.

The models know of a run its link, its frames and how many are lost, and nothing of endpoints. Both
engines are held against them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.results.result import Result
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate_sparely
from traffic.endpoint import Delivery, Headers
from views.report import read_run

GBPS, DELAY_NS, MTU, LINKS, LOSS = 100, 1000, 1024, 4, 0.002
AROUND = 24 + 14 + 20 + 8 + 4  # preamble, gap and FCS, Ethernet, IPv4, UDP, CRC
_LEISURELY = 40_000
PDS = {Delivery.RUD: 12, Delivery.ROD: 12, Delivery.RUDI: 8, Delivery.UUD: 4}
SES = {Headers.STANDARD: 44, Headers.MEDIUM: 32, Headers.SMALL: 20}
NACK = 16


def ns(payload: int, delivery: Delivery, headers: Headers = Headers.STANDARD) -> float:
    """How long a packet takes to leave."""
    return (AROUND + PDS[delivery] + SES[headers] + payload) * 8 / GBPS


def with_mode(delivery: Delivery, *more: str) -> tuple[str, ...]:
    return (f"transport={{kind: uet, delivery: {delivery}}}", *more)


def emulated(out: Path, *changes: str, dilation: int | None = None) -> Result:
    """On Mininet; once more and four times as slowly, if the machine could not keep up."""
    words = [word for change in changes for word in ("--set", change)]
    slowly = ("--dilation", str(dilation)) if dilation else ()
    for folder in (out / "first", out / "second"):
        run = "run", "delivery-modes", "--engine", "mininet", "--out", str(folder)
        done = closlab(*run, *words, *slowly)
        assert (folder / "result.json").exists(), done.stderr
        result = read_run(folder).result
        if result.fidelity.ok:
            return result
        slowly = "--dilation", str(round(4 * result.dilation))
    pytest.skip(f"twice {result.fidelity.note}")


def carried(result: Result, direction: str) -> int:
    return next(use.packets for use in result.links if use.name == direction)


def sent_by_packet(delivery: Delivery) -> float:
    """Transmissions by packet of a message (Bertsekas and Gallager, 2.4). Go-back-n wastes what
    leaves until a sender hears of a loss: until the packet behind the lost one, and a NACK for it,
    have crossed all links, each in turn. RUDI's answers tell of one packet each, and get lost."""
    packet, nack = ns(MTU, delivery), (AROUND + NACK) * 8 / GBPS
    heard = packet + LINKS * (packet + nack + 2 * DELAY_NS)
    return {
        Delivery.RUD: 1 / (1 - LOSS),
        Delivery.ROD: 1 + LOSS / (1 - LOSS) * math.ceil(heard / packet),
        Delivery.RUDI: 1 / (1 - LOSS) ** 2,
        Delivery.UUD: 1,
    }[delivery]


def check_counts(delivery: Delivery, results: Sequence[Result]) -> None:
    """How often packets went, and how long that took; of datagrams, that as many came as were not
    lost."""
    sent = sum(each.roce.data_packets for each in results)
    again = sum(each.roce.retransmitted_packets for each in results)
    assert sent / (sent - again) == pytest.approx(sent_by_packet(delivery), rel=0.05)
    for each in results:
        path_ns = LINKS * (DELAY_NS + ns(MTU, delivery))
        takes_ns = each.roce.data_packets * ns(MTU, delivery) + path_ns
        if delivery is Delivery.UUD:
            came = carried(each, "leaf2>h2")
            assert each.roce.data_packets - came == each.drops.total > 0
            assert carried(each, "h2>leaf2") == each.flows.completed == 0
        else:
            assert each.flows.failed == 0
            assert each.duration_ns == pytest.approx(takes_ns, rel=0.05)


@pytest.mark.parametrize("delivery", [*Delivery])
def test_packets_go_as_often_as_models_have_it(tmp_path: Path, delivery: Delivery) -> None:
    """And in the simulator nothing goes again that was not lost."""
    runs = [
        simulate_sparely("delivery-modes", *with_mode(delivery, f"seed={n}"), out=tmp_path / str(n))
        for n in range(1, 5 if delivery is Delivery.ROD else 3)
    ]
    check_counts(delivery, [run.result for run in runs])
    for run in runs:
        ends = {str(host): counters for host, counters in run.outcome.endpoints.items()}
        came_twice = ends["h2"]["duplicate_request"]
        lost = ends["h1"]["tx_data_packets"] - ends["h2"]["rx_data_packets"] - came_twice
        lost_answers = ends["h2"]["tx_acks"] - ends["h1"]["rx_acks"]
        dropped, again = run.result.drops.total, run.result.roce.retransmitted_packets
        if delivery is Delivery.RUD:
            assert came_twice == 0 and again == lost > 0
        elif delivery is Delivery.RUDI:
            assert came_twice == lost_answers > 0 and again == lost + lost_answers == dropped
        elif delivery is Delivery.UUD:
            assert lost == dropped and again == 0


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.parametrize("delivery", [*Delivery])
def test_they_do_on_mininet(tmp_path: Path, delivery: Delivery) -> None:
    """What a loss costs ROD is a round trip, and a run tells of those late only if many are."""
    is_ordered = delivery is Delivery.ROD
    size = f"traffic.flows.0.bytes={'16MB' if is_ordered else '8MB'}"
    result = emulated(
        tmp_path, *with_mode(delivery, size), dilation=_LEISURELY if is_ordered else None
    )
    check_counts(delivery, [result])


# --- headers --------------------------------------------------------------------------------------

COUNT, SMALL = 300, 512
MANY = f"traffic.flows=[{', '.join([f'{{src: h1, dst: h2, bytes: {SMALL}}}'] * COUNT)}]"


def check_headers(result: Result, delivery: Delivery, headers: Headers, rel: float = 0.02) -> None:
    """Messages of a packet take the bytes that their headers have, and the time of these."""
    assert result.flows.completed == COUNT == carried(result, "h1>leaf1")
    each = AROUND - 24 + PDS[delivery] + SES[headers] + SMALL
    assert next(use.bytes for use in result.links if use.name == "h1>leaf1") == COUNT * each
    takes_ns = (COUNT + LINKS - 1) * ns(SMALL, delivery, headers) + LINKS * DELAY_NS
    longest = result.flows.fct_ns
    assert longest is not None and longest.max == pytest.approx(takes_ns, rel=rel)


def with_headers(delivery: Delivery, headers: Headers) -> tuple[str, ...]:
    transport = f"transport={{kind: uet, delivery: {delivery}, headers: {headers}}}"
    return transport, "loss.rate=0", MANY


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("delivery", "headers"),
    [(delivery, headers) for headers in reversed(Headers) for delivery in Delivery],
)
def test_a_message_of_a_packet_has_short_headers(
    tmp_path: Path, delivery: Delivery, headers: Headers
) -> None:
    result = simulate_sparely(
        "delivery-modes", *with_headers(delivery, headers), out=tmp_path
    ).result
    check_headers(result, delivery, headers)


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.parametrize("headers", [*Headers])
def test_it_has_on_mininet(tmp_path: Path, headers: Headers) -> None:
    """Of datagrams, beside which there is nothing on the link."""
    result = emulated(tmp_path, *with_headers(Delivery.UUD, headers))
    check_headers(result, Delivery.UUD, headers, rel=0.05)
