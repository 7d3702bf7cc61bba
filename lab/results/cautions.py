"""What in a run's figures should make one wonder, in words, each with the cure."""

from __future__ import annotations

from collections.abc import Iterator

from lab.quantity import duration, packets, plural
from lab.results.result import Result
from lab.results.stalls import said

_MOST_STALLS = 4  # sentences
_NO_FAULT_OF_TIME = "deadlock", "no-route", "halted", "paused", "credit"


def cautions(result: Result) -> Iterator[str]:
    """Sentences, for every view of a run."""
    yield from _stalls(result)
    yield from _vain_timeouts(result)
    yield from _hands(result)


def _stalls(result: Result) -> Iterator[str]:
    """Why messages did not arrive."""
    stalls = result.stalls or ()
    yield from map(said, stalls[:_MOST_STALLS])
    if left := sum(stall.messages for stall in stalls[_MOST_STALLS:]):
        yield f"{plural(left, 'more message')} did not arrive: stalls in result.json tells why."


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
    if not roce.timeouts or lost or held or not result.fidelity.ok:
        return
    usual_ns = transport.first_rto_ns or transport.longest_rto_ns
    key = "first_rto_ns" if transport.first_rto_ns else "rto_ns" if transport.rto_ns else "timeout"
    died = f", and {plural(roce.qp_errors, 'queue pair')} gave up" if roce.qp_errors else ""
    yield (
        f"{plural(roce.timeouts, 'time-out')} fired though nothing was lost: "
        f"{packets(roce.retransmitted_packets)} went again in vain{died}. Answers take longer than "
        f"{duration(usual_ns)} here; raise transport.{key}."
    )
