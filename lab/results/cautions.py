"""What in a run's figures should make one wonder, in words, each with the cure."""

from __future__ import annotations

from collections.abc import Iterator

from lab.results.result import Result
from lab.results.stalls import said
from lab.scenario.translate import lossless_classes
from params.quantity import duration, packets, plural

_MAX_STALLS = 4  # sentences
_NO_FAULT_OF_TIME = "deadlock", "no-route", "halted", "paused", "credit"


def cautions(result: Result) -> Iterator[str]:
    """Sentences, for every view of a run."""
    yield from _stalls(result)
    if result.drops.price:
        yield result.drops.price
    yield from _vain_timeouts(result)
    yield from _lost_acks(result)
    yield from _hands(result)


def _stalls(result: Result) -> Iterator[str]:
    """Why messages did not arrive."""
    stalls = result.stalls or ()
    yield from map(said, stalls[:_MAX_STALLS])
    if left := sum(stall.messages for stall in stalls[_MAX_STALLS:]):
        yield f"{plural(left, 'more message')} did not arrive: stalls in result.json tells why."


def _lost_acks(result: Result) -> Iterator[str]:
    """Data lost nothing, but what answered it travelled where packets may be dropped."""
    if result.roce.lost_acks:
        yield (
            f"{plural(result.roce.lost_acks, 'acknowledgement')} did not arrive: with "
            "transport.acks=control they travel in class 6, which is not among pfc.priorities and "
            "may lose packets. Add 6 there, or leave transport.acks out."
        )


def _hands(result: Result) -> Iterator[str]:
    """What was done by hand is not in the scenario's name, and the load balancer nowhere in it."""
    done = [f"{hand.what} at {duration(hand.at_ns)}" for hand in result.by_hand or ()]
    if done:
        yield f"Somebody who watched had this done: {', '.join(done)}."


def _vain_timeouts(result: Result) -> Iterator[str]:
    """Time was out, but nothing had been lost: what went again was sent in vain."""
    roce, transport = result.roce, result.scenario.transport
    lost = result.drops.total or (result.trim and result.trim.cut_packets)
    held = any(stall.verdict in _NO_FAULT_OF_TIME for stall in result.stalls or ())
    mistook = transport.kind.sprays and lossless_classes(result.scenario)
    in_vain = roce.timeouts or (mistook and roce.retransmitted_packets)
    if not in_vain or lost or held or not result.fidelity.ok:
        return
    usual_ns = transport.first_rto_ns or transport.longest_rto_ns
    key = "first_rto_ns" if transport.first_rto_ns else "rto_ns" if transport.rto_ns else "timeout"
    why = f"Answers take longer than {duration(usual_ns)} here; raise transport.{key}."
    if mistook:
        key = "rto_ns" if transport.rto_ns else "first_rto_ns"
        why = f"Pauses hold packets for longer than senders wait here; raise transport.{key}."
    died = f", and {plural(roce.qp_errors, 'queue pair')} gave up" if roce.qp_errors else ""
    yield (
        f"{plural(roce.timeouts, 'time-out')} fired though nothing was lost: "
        f"{packets(roce.retransmitted_packets)} went again in vain{died}. {why}"
    )
