"""Plans: what waits for what, and how long; and lines that make no sense."""

import math
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.traffic.endpoint.star import (
    GBPS,
    A,
    B,
    C,
    ends,
    one_way,
    receives,
    run,
    sends,
    unfinished,
)
from traffic.endpoint import (
    EndpointConfig,
    EndpointPlan,
    QueuePair,
    Transfer,
    TransferKind,
    TransferState,
)

CONFIG = EndpointConfig(link_bps=100 * GBPS)


def test_a_chain_over_three_hosts_runs_without_a_controller(strict_star: Path) -> None:
    ab, ba = ends(A, B, 17)
    bc, cb = ends(B, C, 33)
    ca, ac = ends(C, A, 49)
    send, receive, compute = TransferKind.SEND, TransferKind.RECEIVE, TransferKind.COMPUTE
    plans = {
        A: ((ab, ac), (Transfer(id=1, kind=send, queue_pair=17, size=10_000),
                       Transfer(id=3, kind=receive, queue_pair=50, size=30_000))),
        B: ((ba, bc), (Transfer(id=1, kind=receive, queue_pair=18, size=10_000),
                       Transfer(id=2, kind=send, queue_pair=33, size=20_000,
                                delay_ns=5_000, after=(1,)))),
        C: ((cb, ca), (Transfer(id=2, kind=receive, queue_pair=34, size=20_000),
                       Transfer(id=8, kind=compute, delay_ns=7_000, after=(2,)),
                       Transfer(id=9, kind=compute, after=(8,)),
                       Transfer(id=3, kind=send, queue_pair=49, size=30_000, after=(9, 2)))),
    }  # fmt: skip
    outcome = run(
        strict_star,
        {
            host: EndpointPlan(config=CONFIG, queue_pairs=pairs, transfers=transfers)
            for host, (pairs, transfers) in plans.items()
        },
    )
    a, b, c = (outcome.hosts[host].transfers for host in (A, B, C))
    assert not any(unfinished(outcome.hosts[host]) for host in (A, B, C))
    assert b[2].start_ns == b[1].end_ns + 5_000
    assert c[8].end_ns == c[2].end_ns + 7_000
    assert c[3].start_ns == c[9].end_ns == c[8].end_ns
    assert a[3].end_ns > c[3].start_ns


@pytest.mark.parametrize("gbps", [25, 100, 400])
def test_frames_leave_back_to_back_to_the_nanosecond(star: Path, gbps: int) -> None:
    config = EndpointConfig(link_bps=gbps * GBPS)
    outcome = run(star, one_way(config, [4096 * 300]), extra=[f"watch {A}"])
    frames = [frame for frame in outcome.frames if frame.host == A]
    assert len(frames) == 300
    free = 0.0  # when the wire is; frames cost preamble, gap and FCS beside themselves
    for frame in frames:
        assert frame.at_ns == math.ceil(round(free, 3))
        free += (frame.wire + 24) * 8 / gbps


def test_a_thousand_computations_in_a_row_are_no_recursion(strict_star: Path) -> None:
    chain = tuple(
        Transfer(id=index, kind=TransferKind.COMPUTE, after=(index - 1,) if index else ())
        for index in range(50_000)
    )
    plan = EndpointPlan(config=CONFIG, queue_pairs=(), transfers=chain)
    outcome = run(strict_star, {A: plan})
    assert not unfinished(outcome.hosts[A])


def refusal(star: Path, *lines: str) -> str:
    text = "\n".join(("host 10.0.0.1", *lines, "run", ""))
    done = subprocess.run([star], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stdout


HEAD = "endpoint link-bps=1000000000 qps=1 transfers=2 edges=2"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["send id=1"], "endpoint comes first"),
        (["endpoint qps=1"], "begins with link-bps"),
        (["endpoint link-bps=ten"], "begins with link-bps"),
        ([HEAD + " mtu=100"], "multiple of 8"),
        ([HEAD + " window=0"], "window"),
        ([HEAD + " mtu=4096x"], "'4096x' is no value for mtu"),
        ([HEAD + " mtu=-8"], "'-8' is no value for mtu"),
        ([HEAD + " colour=blue"], "no key 'colour'"),
        ([HEAD + " recovery=hope"], "'hope' is no value for recovery"),
        ([HEAD + " dcqcn-profile=fast"], "'fast' is no value for dcqcn-profile"),
        ([HEAD + " qps=99999999"], "fewer than 2^24 queue pairs"),
        ([HEAD, HEAD], "an endpoint already"),
        ([HEAD, "qp number=1 remote=2"], "templates are Ethernet"),
        ([HEAD, "qp number=1 remote=2 data=00ff control=00"], "templates are Ethernet"),
        ([HEAD, "qp number=1 remote=2 control=0"], "'0' is no value for control"),
        ([HEAD, "qp number=1 remote=2 data=xy"], "'xy' is no value for data"),
        ([HEAD, "qp number=16777216 remote=2"], "24 bits"),
        ([HEAD, "send id=1 qp=5 size=1"], "no queue pair 5"),
        ([HEAD, "compute id=1", "compute id=1"], "there already"),
        ([HEAD, "compute id=1", "after 1 2"], "no part in"),
        ([HEAD, "compute id=1", "after 1 x"], "'x' is not a transfer's id"),
        ([HEAD, "compute id=1", "compute id=2", "compute id=3"], "more transfers than room"),
        ([HEAD, "compute id=1", "after 1 1 1 1"], "more dependencies than room"),
        ([HEAD, "sing loudly"], "no line 'sing'"),
        ([HEAD, "compute id"], "'id' is not key=value"),
    ],
)
def test_a_wrong_line_is_refused_in_words(strict_star: Path, lines: list[str], why: str) -> None:
    assert why in refusal(strict_star, *lines)


def test_a_second_queue_pair_of_a_number_is_refused(strict_star: Path) -> None:
    line = ends(A, B)[0].line()
    assert "there already" in refusal(strict_star, HEAD.replace("qps=1", "qps=2"), line, line)
    assert "more queue pairs" in refusal(strict_star, HEAD, line, line)


@pytest.mark.parametrize("size", [1 << 31, (1 << 31) + 1])
def test_sizes_that_no_message_has(strict_star: Path, size: int) -> None:
    line = f"send id=1 qp=17 size={size}"
    head = "endpoint link-bps=1000000000 mtu=64 qps=1 transfers=2 edges=2"
    assert "2^31 bytes" in refusal(strict_star, head, ends(A, B)[0].line(), line)


def test_python_refuses_what_makes_no_sense() -> None:
    pair = ends(A, B)[0]
    with pytest.raises(ValidationError):
        Transfer(id=1, kind=TransferKind.SEND, size=5)
    with pytest.raises(ValidationError):
        Transfer(id=1, kind=TransferKind.SEND, queue_pair=17, size=-1)
    with pytest.raises(ValidationError):
        Transfer(id=1, kind=TransferKind.RECEIVE, queue_pair=17, size=5, after=(2,))
    with pytest.raises(ValidationError):
        EndpointConfig(link_bps=0)
    with pytest.raises(ValidationError):
        EndpointConfig(link_bps=1, colour="blue")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        QueuePair(number=1 << 24, flow=pair.flow)


def test_what_waits_for_what_does_not_come_is_reported_as_waiting(strict_star: Path) -> None:
    here, there = ends(A, B)
    late = Transfer(id=5, kind=TransferKind.SEND, queue_pair=17, size=1, after=(4,))
    plans = {
        A: EndpointPlan(
            config=CONFIG, queue_pairs=(here,), transfers=(*receives(here, [10], 4), late)
        ),
        B: EndpointPlan(config=CONFIG, queue_pairs=(there,), transfers=receives(there, [1], 5)),
    }
    outcome = run(strict_star, plans, timeout=1e6)
    assert outcome.hosts[A].transfers[5].state is TransferState.WAITING
    assert outcome.hosts[A].transfers[5].start_ns is None
    assert not sends(here, [])
