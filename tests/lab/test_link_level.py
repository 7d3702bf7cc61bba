"""Links that try again (LLR) and credits instead of pauses (CBFC), beside models of their own.

The models know rates, lengths, delays and chances, and nothing of the code: how many frames a link
sends again for one that is lost, and how fast a sender is whose credits take so long to come back.
`closlab test` takes a few links drawn by lot, `closlab test --slow` many.
"""

import math
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller import LinkSpec, thresholds
from lab.errors import LabError
from lab.results.result import Result
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data
from tests.lab.simulated import simulate_sparely

HEADERS = 58  # of a RoCEv2 packet, its ICRC included
GAP = 24  # bytes of the wire that a frame takes besides
NUMBER, ANSWER_BYTES = 6, 24  # of a link that tries again
ANSWER = ANSWER_BYTES + GAP
WORD = 60 + GAP
ONE_HOP = "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}"
SENDER_S = {"lossy": "h2-leaf2", "sends": "h2>leaf2"}  # cable, in place of a switch's
RECEIVER_S = {"lossy": "h1-leaf1", "sends": "leaf1>h1"}
CREDITED = 1500  # packets that go by credits


def run(*changes: str) -> Result:
    """An incast with some changes."""
    with tempfile.TemporaryDirectory() as folder:
        return simulate_sparely("incast", *changes, out=Path(folder)).result


class Hop(Data):
    """A link between switches that is always busy, and loses frames."""

    gbps: float
    delay_ns: int
    mtu: int
    loss: float
    packets: int = 4000
    lossy: str = "leaf2-spine1"
    sends: str = "leaf2>spine1"  # which way data takes it

    @property
    def frame_ns(self) -> float:
        """How long a packet takes."""
        return (self.mtu + HEADERS + GAP) * 8 / self.gbps

    def changes(self, llr: str) -> tuple[str, ...]:
        here, others = (self.gbps, self.delay_ns), (2 * self.gbps, 100)
        is_host_s = self.lossy in (SENDER_S["lossy"], RECEIVER_S["lossy"])
        ends, fabric = (here, others) if is_host_s else (others, here)
        llr_hosts = is_host_s and llr != "none"
        return (
            ONE_HOP,
            f"link={{rate_gbps: {ends[0]}, delay_ns: {ends[1]}, fabric_rate_gbps: {fabric[0]}, "
            f"fabric_delay_ns: {fabric[1]}, mtu: {self.mtu}, llr: {llr}, llr_hosts: {llr_hosts}}}",
            f"traffic={{kind: incast, senders: 1, bytes: {self.packets * self.mtu}}}",
            "buffer.bytes=64MB",
            f"loss={{rate: {self.loss}, links: [{self.lossy}]}}",
            "ecn.enabled=false",
        )

    def sent_again(self, llr: str) -> tuple[float, float]:
        """The least and the most frames to be sent again, but for one run in many thousands."""
        losses = self.packets * self.loss / (1 - self.loss)
        loop_ns = 2 * self.delay_ns + ANSWER * 8 / self.gbps
        behind = math.ceil(loop_ns / self.frame_ns)  # that left before the sender could know
        # A frame the other way may be in the answer's way, and an answer be lost: then a time-out.
        more = math.ceil((loop_ns + self.frame_ns) / self.frame_ns)
        cable = LinkSpec(round(self.gbps * 1e9), self.delay_ns)
        timeout_ns = thresholds.replay_timeout_ns(cable, self.mtu + 400)
        unanswered = 4 * losses * self.loss * (1 + timeout_ns / self.frame_ns) + 2
        least, most = (1 + behind, 1 + more) if llr == "go-back-n" else (1, 1)
        spread = 4 * math.sqrt(losses)
        return (losses - spread) * least, (losses + spread) * most + unanswered


def hops(seed: int, count: int) -> list[Hop]:
    """Links drawn by lot."""
    rng = random.Random(seed)
    return [
        Hop(
            gbps=rng.choice((10, 25, 100, 400)),
            delay_ns=rng.choice((20, 100, 500, 2000)),
            mtu=rng.choice((256, 1024, 4096, 9000)),
            loss=rng.choice((0.001, 0.005, 0.01, 0.03)),
        )
        for _ in range(count)
    ]


def check(hop: Hop, llr: str) -> None:
    """All of it arrives in order, and costs what the model says is sent again."""
    result = run(*hop.changes(llr))
    assert result.flows.completed == 1
    assert result.drops.total == 0
    assert result.llr is not None
    assert result.llr.spoilt_frames > 0
    assert result.roce.out_of_order_packets == 0
    assert result.roce.retransmitted_packets == 0
    again = result.llr.by_link[hop.sends].replayed_frames
    least, most = hop.sent_again(llr)
    assert least <= again <= most
    undisturbed = run(*hop.changes("none"), "loss.rate=0")
    more_ns = result.duration_ns - undisturbed.duration_ns
    ends_ns = 20 * (2 * hop.delay_ns + hop.frame_ns)  # of time-outs with nothing else to send
    assert 0.9 * again * hop.frame_ns - ends_ns < more_ns
    answers_ns = result.llr.answers * ANSWER * 8 / hop.gbps
    assert more_ns < 1.1 * again * hop.frame_ns + ends_ns * (1 + result.llr.timeouts) + answers_ns


@pytest.mark.parametrize("llr", ["go-back-n", "selective"])
@pytest.mark.parametrize("hop", hops(1, 2), ids=str)
def test_a_link_delivers_all_it_loses_for_what_the_model_says(hop: Hop, llr: str) -> None:
    check(hop, llr)


@pytest.mark.parametrize("llr", ["go-back-n", "selective"])
@pytest.mark.parametrize("end", [SENDER_S, RECEIVER_S], ids=lambda end: end["sends"])
def test_so_does_a_link_to_a_host(end: dict[str, str], llr: str) -> None:
    check(replace(hops(5, 1)[0], **end), llr)


@pytest.mark.slow
@pytest.mark.parametrize("llr", ["go-back-n", "selective"])
@pytest.mark.parametrize("end", [{}, SENDER_S, RECEIVER_S], ids=str)
@pytest.mark.parametrize("hop", hops(2, 40), ids=str)
def test_so_do_many_links(hop: Hop, end: dict[str, str], llr: str) -> None:
    check(replace(hop, **end), llr)


def test_a_host_s_cable_carries_each_frame_as_often_as_chance_has_it(tmp_path: Path) -> None:
    """By the books of the cable itself: with a number each, 1 / (1 - p) times, and answers."""
    hop = Hop(100, 500, 1024, 0.05, **SENDER_S)
    run = simulate_sparely("incast", *hop.changes("selective"), out=tmp_path)
    lines = [line for line in run.outcome.link_books[hop.sends] if line.book == "in"]
    frames = hop.packets / (1 - hop.loss)
    spread = 4 * math.sqrt(hop.packets * hop.loss) / (1 - hop.loss)
    data = [line for line in lines if line.bytes > 100 * line.packets]
    carried = sum(line.packets for line in data)
    assert carried == pytest.approx(frames, abs=spread)
    assert sum(line.bytes for line in data) == pytest.approx(
        carried * (hop.mtu + HEADERS + NUMBER), rel=0.001
    )
    assert all(line.bytes == ANSWER_BYTES * line.packets for line in lines if line not in data)


def sweep(seed: int) -> tuple[str, ...]:
    """A fabric by lot, of which every cable to a host loses frames and tries again."""
    rng = random.Random(seed)
    kind = ("sue", "roce")[seed % 2]
    leaves = rng.choice((1, 2, 3))
    traffic = rng.choice(
        (
            "kind: incast, senders: 3, bytes: 400KB",
            "kind: collective, op: all-to-all, bytes: 400KB",
            "kind: collective, op: all-reduce, bytes: 200KB",
            "kind: experts, experts: 24, active: 2, tokens: 16, token_bytes: 3000, "
            "combine_bytes: 4000, compute_ns: 1us",
        )
    )
    return (
        f"topology={{kind: leaf-spine, leaves: {leaves}, spines: {rng.choice((1, 2))}, "
        f"hosts_per_leaf: 4}}",
        f"link={{rate_gbps: {rng.choice((50, 200, 800))}, delay_ns: {rng.randrange(20, 2000)}, "
        f"mtu: {rng.choice((256, 1024, 3840))}, llr: {rng.choice(('go-back-n', 'selective'))}, "
        f"llr_hosts: true, cbfc: {rng.random() < 0.5}}}",
        f"loss.rate={rng.uniform(0.002, 0.03):.4f}",
        f"transport={{kind: {kind}}}", f"traffic={{{traffic}}}", "buffer.bytes=64MB",
        f"ecn.enabled={rng.random() < 0.3}", "int.share=0", f"seed={seed}",
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(15))
def test_whatever_hosts_cables_lose_no_host_sends_again(seed: int) -> None:
    """Neither SUE's adapters nor RoCEv2's; and to the byte by the books, or the run fails."""
    result = run(*sweep(seed))
    assert result.flows.completed == result.flows.count
    assert result.llr is not None
    assert result.llr.spoilt_frames > 0
    assert result.llr.strange_frames == result.drops.total == 0
    roce = result.roce
    assert roce.retransmitted_packets == roce.timeouts == roce.naks == 0
    assert roce.out_of_order_packets == 0
    assert result.credits is None or result.credits.strange == result.credits.uncovered == 0


def test_without_it_hosts_have_to() -> None:
    again = [run(*sweep(seed), "link.llr_hosts=false").roce for seed in (0, 1)]
    assert all(each.retransmitted_packets > 0 for each in again)


def cost(hop: Hop, llr: str) -> float:
    """How much longer it takes because frames are lost, nothing of which reaches anybody."""
    with_loss = run(*hop.changes(llr))
    without = run(*hop.changes("none"), "loss.rate=0")
    assert with_loss.drops.total == with_loss.roce.retransmitted_packets == 0
    assert with_loss.roce.out_of_order_packets == 0
    return with_loss.duration_ns / without.duration_ns - 1


def one_in_a_hundred(gbps: float, delay_ns: int, mtu: int) -> Hop:
    """Busy for so long that it does not matter what waits once, for the round trips of a replay.

    Whatever comes behind a gap waits for it, three of them or four if the replay is lost as well;
    after that there is a queue behind the link, which never rests again.
    """
    hop = Hop(gbps, delay_ns, mtu, 0.01)
    return replace(hop, packets=max(12_000, round(600 * 2 * delay_ns / hop.frame_ns)))


@pytest.mark.parametrize(("gbps", "delay_ns"), [(100, 1000), (400, 2000)])
def test_by_default_one_frame_in_a_hundred_costs_three_percent_at_most(
    gbps: float, delay_ns: int
) -> None:
    assert cost(one_in_a_hundred(gbps, delay_ns, 4096), "true") < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_so_it_does_on_any_link(seed: int) -> None:
    rng = random.Random(seed)
    gbps, delay_ns = rng.choice((10, 25, 100, 200, 400)), round(10 ** rng.uniform(1, 3.7))
    assert cost(one_in_a_hundred(gbps, delay_ns, rng.choice((1024, 4096, 9000))), "true") < 0.03


@pytest.mark.parametrize(
    ("delay_ns", "is_within"),
    [
        (100, True),
        pytest.param(20, True, marks=pytest.mark.slow),
        (400, False),
        pytest.param(1000, False, marks=pytest.mark.slow),
    ],
)
def test_going_back_costs_as_much_only_where_an_answer_takes_a_packet_s_time_at_most(
    delay_ns: int, is_within: bool
) -> None:
    """docs/decisions/0010: each frame lost costs itself and what left before its answer came."""
    hop = one_in_a_hundred(100, delay_ns, 4096)
    behind = math.ceil((2 * delay_ns + ANSWER * 8 / hop.gbps) / hop.frame_ns)
    by_formula = 0.01 / 0.99 * (1 + behind)
    assert (by_formula < 0.03) == is_within
    found = cost(hop, "go-back-n")
    assert (found < 0.03) == is_within
    assert found == pytest.approx(by_formula, rel=0.3)


def test_a_link_that_loses_nothing_costs_next_to_nothing() -> None:
    changes = Hop(100, 1000, 4096, 0).changes
    plain, retried = run(*changes("none")), run(*changes("go-back-n"))
    assert retried.llr is not None
    assert retried.llr.replayed_frames == retried.llr.spoilt_frames == 0
    assert retried.duration_ns < 1.005 * plain.duration_ns


# --- credits --------------------------------------------------------------------------------------


def in_cells(size: int, cell: int) -> int:
    """What so many bytes take of a memory of cells."""
    return -(-size // cell) * cell


def rate_by_credits(
    gbps: float, delay_ns: float, frame: int, credit: int, room: int, cell: int
) -> float:
    """Gb/s of frames through a link whose receiver passes on each as soon as it is there.

    The sender needs room for the largest frame, and both count whole cells. The receiver tells of
    two of the largest frames at once, or of an eighth of the credit if that is less: so a round
    trip carries whole frames, one less than there is credit for, and none that was not told yet.
    """
    takes, word = in_cells(frame, cell), min(2 * room, credit // 8)
    credit, room = in_cells(credit, cell), in_cells(room, cell)
    bit_ns = 1 / gbps
    now = free_at = 0.0
    spent = freed = granted = 0
    limit = credit
    words: list[Any] = []
    for _ in range(CREDITED):
        now = max(now, free_at)
        while True:
            while words and words[0][0] <= now:
                limit = words.pop(0)[1]
            if limit - spent >= room:
                break
            now = words[0][0]
        free_at = now + (frame + GAP) * 8 * bit_ns
        spent += takes
        freed += takes
        if freed - granted >= word:
            granted = freed
            words.append((free_at + 2 * delay_ns + WORD * 8 * bit_ns, freed + credit))
    return CREDITED * frame * 8 / free_at


CreditCase = tuple[int, int, int, float, int]


def credit_cases(seed: int, count: int) -> list[CreditCase]:
    rng = random.Random(seed)
    return [
        (
            rng.choice((10, 100, 400)),
            round(math.exp(rng.uniform(math.log(100), math.log(20_000)))),
            rng.choice((256, 1024, 4096, 8 * rng.randrange(32, 1126))),
            rng.uniform(4.2, 40),
            rng.choice((1, 1, 64, 254)),
        )
        for _ in range(count)
    ]


def check_rate(gbps: int, delay_ns: int, mtu: int, frames: float, cell: int) -> None:
    """A flow is as fast as the model says its credits allow."""
    room = mtu + HEADERS + 20 + 8 + 16 + 12 * 6  # see `Settings.max_frame`
    credit = round(frames * (mtu + 500))
    result = run(
        ONE_HOP,
        f"link={{rate_gbps: {gbps}, delay_ns: {delay_ns}, mtu: {mtu}}}",
        "link.cbfc=true",
        f"link.credit={credit}",
        f"buffer.cell={cell}",
        f"traffic={{kind: incast, senders: 1, bytes: {CREDITED * mtu}}}",
        "buffer.bytes=64MB",
        "transport.window=100000",
    )
    assert result.drops.total == result.pfc.xoff_frames == 0
    assert result.credits is not None
    assert result.credits.questions == result.credits.strange == result.credits.uncovered == 0
    frame_ns = (mtu + HEADERS + GAP) * 8 / gbps
    beyond_ns = 8 * delay_ns + 3 * frame_ns  # the last one's way over three more links, and back
    measured = CREDITED * (mtu + HEADERS) * 8 / (result.duration_ns - beyond_ns)
    model = rate_by_credits(gbps, delay_ns, mtu + HEADERS, credit, room, cell)
    assert measured == pytest.approx(model, rel=0.02)


@pytest.mark.parametrize("case", credit_cases(3, 4), ids=str)
def test_a_sender_is_as_fast_as_its_credits_allow(case: CreditCase) -> None:
    check_rate(*case)


@pytest.mark.slow
@pytest.mark.parametrize("case", credit_cases(4, 60), ids=str)
def test_so_is_it_with_many_credits_and_links(case: CreditCase) -> None:
    check_rate(*case)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("pfc.priorities=[3, 4]",),
        ("buffer.cell=256",),
        (
            "link.llr=go-back-n",
            "buffer.bytes=4MB",
            "loss={rate: 0.01, links: [leaf1-spine1, leaf2-spine1]}",
        ),
        (
            "link.llr=selective",
            "buffer.bytes=4MB",
            "loss={rate: 0.01, links: [leaf1-spine1, leaf2-spine1]}",
        ),
        ("lb.policy=conga", "int.share=0.3"),
    ],
    ids=str,
)
def test_an_incast_by_credits_drops_and_pauses_nothing(changes: tuple[str, ...]) -> None:
    result = run("link.cbfc=true", *changes)
    assert result.flows.completed == result.flows.count == 7
    assert result.drops.total == 0
    assert result.pfc.xoff_frames == result.pfc.xon_frames == result.pfc.paused_ns == 0
    assert result.credits is not None
    assert result.credits.waits > 0
    assert result.credits.strange == result.credits.uncovered == 0
    assert result.fidelity.ok


def test_what_a_cable_loses_is_granted_again_once_somebody_asks() -> None:
    result = run("link.cbfc=true", "loss={rate: 0.02}", "transport.recovery=selective")
    assert result.flows.completed == 7
    assert result.credits is not None
    corrupted = run(
        "link.cbfc=true",
        "faults=[{at_ns: 0, action: corrupt, link: leaf1-spine1, rate: 0.05}]",
        "transport={recovery: selective, timeout: 8}",
    )
    assert corrupted.flows.completed == 7
    assert corrupted.credits is not None
    assert corrupted.credits.questions > 0


@pytest.mark.parametrize(
    ("change", "cure"),
    [
        (("link.credit=100KB",), "link.cbfc"),
        (("link.cbfc=true", "link.credit=8KB"), "take"),
        (("link.cbfc=true", "transport.endpoint=scapy"), "transport.endpoint core"),
        (("link.cbfc=true", "transport.receive_gbps=10"), "leave one of them out"),
        (
            ("link.llr=selective", "faults=[{at_ns: 1us, action: restart, switch: leaf1}]"),
            "link.llr to none",
        ),
        (("link.llr=twice",), "go-back-n"),
        (("link.llr_hosts=true",), "set that to selective or go-back-n"),
        (
            ("link.llr=true", "link.llr_hosts=true", "faults=[{at_ns: 1, action: halt, host: h1}]"),
            "leave out the halt",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_cure(change: tuple[str, ...], cure: str) -> None:
    with pytest.raises(LabError, match=cure):
        Experiment.of(catalogue.load("incast", change))


@pytest.mark.parametrize("llr", ["go-back-n", "selective"])
@pytest.mark.parametrize("kind", ["roce", "uet"])
@pytest.mark.parametrize("end", [{}, SENDER_S, RECEIVER_S], ids=str)
def test_what_a_cut_link_had_taken_goes_on_when_it_is_mended(
    end: dict[str, str], llr: str, kind: str
) -> None:
    """To the frame and byte, or the run fails; meanwhile all that comes is dropped."""
    rng = random.Random(f"{llr} {kind}")
    hop = Hop(50, 300, 4096, 0, packets=150, **end)
    cuts = [
        {"at_ns": at_ns, "action": "down", "link": hop.lossy, "for_ns": rng.randrange(500, 9000)}
        for at_ns in range(5_000, 90_000, 17_000)
    ]
    result = run(
        *hop.changes(llr), f"faults={cuts}",
        f"transport={{kind: {kind}, recovery: selective, rto_ns: 20us, retry_limit: 200}}",
    )  # fmt: skip
    assert result.flows.completed == 1
    drops = result.drops
    assert drops.total > 10
    assert drops.total == sum(drops.by_reason.get(why, 0) for why in ("port_down", "link_cut"))
    assert result.roce.retransmitted_packets > 10
