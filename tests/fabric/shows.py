"""What the fabric's mechanisms promise, shown in the simulator, on Mininet, and there on BMv2 too.

    python -m tests.fabric.shows [NAME...] [--engine sim|mininet] [--switch soft|bmv2] [--out DIR]

prints the figures with the commands that give them. Each show raises if its promise is not kept;
`test_shows.py` runs them all. What the program costs is printed by
`python -m tests.fabric.test_cost`; what telemetry tells is held against the switches' own clocks by
`test_telemetry.py` and `test_telemetry_emulated.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from controller.headroom import headroom as needed
from params.data import Data
from tests.fabric import test_mark, test_pause
from tests.fabric.captures import reported
from tests.fabric.runs import CAPTURED, Outcome, Place, Runner
from tests.fabric.test_pause import FRAME
from tests.fabric.testbed import ECN_CONGESTED, ecn_of

Figures = Iterator[tuple[str, str]]

# --- pauses ---------------------------------------------------------------------------------------

RECEIVER_LEAF = "leaf1"


class Pace(Data):
    """How fast the links of an incast are, and what that takes."""

    gbps: int
    changes: tuple[str, ...]
    dilation: int | None = None


# Under the real clock senders are granted longer to obey: a process is no adapter.
PACES = {
    Place.SIM: Pace(100, ("buffer.bytes=4MB",)),
    Place.MININET: Pace(25, ("buffer.bytes=4MB", "pfc.response_ns=100us"), 400),
    Place.BMV2: Pace(
        5, ("buffer.bytes=1MB", "pfc.response_ns=100us", "ecn.kmin=20KB", "ecn.kmax=80KB")
    ),
}


def incast(run: Runner) -> Figures:
    """Seven hosts write to one at full rate for 100 fabric ms."""
    gbps = PACES[run.place].gbps
    paused = _incast(run)
    yield "PFC", _pauses_text(paused)
    assert paused.drops == {}
    assert paused.result["roce"]["retransmitted_packets"] == 0
    assert _receiver_is_busy(paused, gbps) > 0.97
    _check_hops(paused.pauses())

    dropped = _incast(run, "pfc.enabled=false", "transport.timeout=10")
    yield "neither", _pauses_text(dropped)
    assert dropped.drops["buffer_full"] > 100
    assert dropped.pauses() == {}

    marked = _incast(run, "ecn.enabled=true", "transport.cc=dcqcn")
    yield "PFC, ECN and DCQCN", _pauses_text(marked)
    assert marked.drops == {}
    less = 1 - marked.paused_ns / paused.paused_ns
    yield "paused less by", f"{less:.1%}"
    assert less >= 0.80
    assert _receiver_is_busy(marked, gbps) > 0.7


def mixed(run: Runner) -> Figures:
    """The same incast beside lossy traffic that collides with it: only that is dropped."""
    size = _share_of_incast(run)
    collide = ", ".join(f"{{src: h{src}, dst: h8, bytes: {size}}}" for src in (1, 3, 5))
    lossy = f"{{kind: flows, name: lossy, priority: 0, flows: [{collide}]}}"
    lossless = f"{{kind: incast, bytes: {size}}}"
    both = _incast(run, "limit_ns=10ms", f"traffic={{kind: mix, parts: [{lossless}, {lossy}]}}")
    yield "PFC", _pauses_text(both)
    assert set(both.drops) == {"buffer_full"}
    assert both.result["pfc"]["stray_xoff_frames"] == 0
    assert both.pauses()


def _incast(run: Runner, *changes: str) -> Outcome:
    pace = PACES[run.place]
    return run(
        "incast",
        f"link.rate_gbps={pace.gbps}",
        *("limit_ns=100ms", "transport.recovery=selective", *pace.changes),
        f"traffic.bytes={_share_of_incast(run)}",
        *changes,
        dilation=pace.dilation,
        tries=1,  # long as it is: what is late here is answered by the longer headroom
    )


def _share_of_incast(run: Runner) -> int:
    """What a sender has to send: more than the receiver can take in the time."""
    return round(100 * PACES[run.place].gbps * 125_000 / 7 * 1.3)


def _pauses_text(outcome: Outcome) -> str:
    pfc = outcome.result["pfc"]
    return (
        f"{sum(outcome.drops.values()):,} drops, {pfc['xoff_frames']:,} pause frames on "
        f"{len(outcome.pauses())} hops ({pfc['stray_xoff_frames']} for lossy priorities), "
        f"{outcome.paused_ns / 1e6:.1f} ms of standing still, "
        f"{outcome.result['ecn']['marked_packets']:,} marks, "
        f"{outcome.carried(f'{RECEIVER_LEAF}>h1') / 1e6:,.0f} MB to the receiver"
    )


def _receiver_is_busy(outcome: Outcome, gbps: float) -> float:
    return outcome.carried(f"{RECEIVER_LEAF}>h1") * 8 / (gbps * 100e6)


def _check_hops(pauses: dict[str, int]) -> None:
    """Every hop that carries the incast is paused, and no other.

    Which uplinks those are is the hash's choice: of each leaf whose hosts were paused, one at
    least; of the spines towards the receiver's leaf, those that have something for it.
    """
    assert all(pauses[f"h{host}>leaf{(host + 1) // 2}"] for host in range(2, 9))
    assert not any(name.startswith("h1>") for name in pauses)
    into = {name for name in pauses if name.endswith(f">{RECEIVER_LEAF}") and name[0] == "s"}
    assert into
    for leaf in (2, 3, 4):
        up = {name for name in pauses if name.startswith(f"leaf{leaf}>")}
        assert up, f"leaf{leaf}"
        assert {name.split(">")[1] for name in up} <= {name.split(">")[0] for name in into}
    down = [name for name in pauses if name[0] == "s" and name not in into]
    assert not down, down


# --- paths ----------------------------------------------------------------------------------------

UNHURRIED = 8000  # so that what a busy machine adds to a rest is little beside the flowlet gap
DRAWS = 6
BY_FLOW = ("ecmp", "flowlet", "dlb", "conga")
BY_PACKET = ("spray", "adaptive", "drill")


def steady(run: Runner) -> Figures:
    """Two elephants on one uplink that leave no gaps: only choices by packet part them, at a price.

    Where they begin is drawn anew on every run of BMv2: if apart, they must stay there, and begin
    again.
    """
    size = "24MB" if run.place is Place.SIM else "6MB"
    flow = f"traffic.flows=[{{src: h1, dst: h4, bytes: {size}}}]"
    alone = run("two-elephants", flow, dilation=UNHURRIED).whole_ns
    both = [f"traffic.flows.{number}.bytes={size}" for number in (0, 1)]
    for policy in (*BY_FLOW, *BY_PACKET):
        for _ in range(DRAWS):
            outcome = run("two-elephants", *both, f"lb.policy={policy}", dilation=UNHURRIED)
            share = alone / outcome.whole_ns
            up = [outcome.carried(f"leaf1>spine{spine}") for spine in (1, 2)]
            if policy in BY_PACKET or min(up) == 0:
                break
            assert run.place is Place.BMV2
            assert 0.99 < up[0] / up[1] < 1.01, f"{policy} moved a flow that left no gap"
        yield (
            policy,
            (
                f"{share:.0%} of what each has alone, uplinks carried {up[0]:,} and {up[1]:,} B, "
                f"{outcome.reordered:,} packets out of order"
            ),
        )
        if policy in BY_PACKET:
            assert share > 0.9
            assert outcome.reordered > (100 if policy == "spray" else 0)
        else:
            assert 0.45 < share < 0.55
            assert min(up) == 0
            assert outcome.reordered == 0


def resting(run: Runner) -> Figures:
    """The same two, resting between bursts: flowlets part them, and keep the order.

    What is drawn at random falls together again every other time where there are two uplinks, and
    seldom where there are eight.
    """
    flow = "traffic.flows=[{src: h1, dst: h4, bytes: 1MB}]"
    bursts = 24 if run.place is Place.SIM else 12
    rests = ("traffic.rest_ns=26us", f"traffic.messages={bursts}")
    both = (*rests, "traffic.flows.0.bytes=1MB", "traffic.flows.1.bytes=900KB")
    alone = run("two-elephants", *rests, flow, dilation=UNHURRIED).whole_ns
    at_least = {"flowlet": 0.74, "dlb": 0.9, "conga": 0.88}
    if run.place is Place.BMV2:
        at_least |= {"flowlet": 0.6, "conga": 0.8}  # what is drawn differs from run to run
    shares = {}
    for policy in BY_FLOW:
        outcome = run("two-elephants", *both, f"lb.policy={policy}", dilation=UNHURRIED)
        shares[policy] = alone / outcome.whole_ns
        assert outcome.reordered == 0
        yield policy, f"{shares[policy]:.0%} of what each has alone, nothing out of order"
    assert shares.pop("ecmp") < 0.75
    assert all(share >= at_least[policy] for policy, share in shares.items()), shares
    wide = ("lb.policy=flowlet", "topology.spines=8")
    parted = run("two-elephants", *both, *wide, dilation=UNHURRIED).whole_ns
    yield "flowlet, 8 uplinks", f"{alone / parted:.0%} of what each has alone"
    assert alone / parted > 0.88


def degraded(run: Runner) -> Figures:
    """A path's far half has a quarter of its rate: conga hears of it, the others do not."""
    seeds = range(1, 9) if run.place is Place.SIM else (2,)
    fewer = () if run.place is Place.SIM else ("traffic.messages=30",)
    means = {}
    for policy in ("ecmp", "dlb", "conga"):
        runs = [
            run("degraded-path", *fewer, f"lb.policy={policy}", seed=seed, dilation=4000)
            for seed in seeds
        ]
        means[policy] = sum(outcome.mean_ns for outcome in runs) / len(runs)
        yield policy, f"bursts take {means[policy] / 1000:.1f} us on average"
    gain = 1.0 if run.place is Place.BMV2 else 0.9  # its draws differ from run to run
    assert means["conga"] < gain * means["dlb"]
    assert means["conga"] < 0.9 * means["ecmp"]


# --- failures -------------------------------------------------------------------------------------

CUT_NS = 500_000
CUT_SPINE = "spine1"


def failure(run: Runner) -> Figures:
    """A cable is cut: who crosses it moves within a fabric millisecond, nobody else is disturbed.

    h1 writes to h5 over it, and h6 to h2; h3 and h4 write to h7 and h8.
    """
    flows = ", ".join(
        f"{{src: h{src}, dst: h{dst}, bytes: 20MB}}"
        for src, dst in ((1, 5), (6, 2), (3, 7), (4, 8))
    )
    base = (
        *("topology.spines=4", f"traffic={{kind: flows, flows: [{flows}]}}"),
        *("transport.rto_ns=200us", "transport.recovery=selective"),
    )
    whole = run("link-failure", *base, "faults=[]", seed=CUT_SEED)
    for way in (f"leaf1>{CUT_SPINE}", f"{CUT_SPINE}>leaf1"):
        assert whole.carried(way) > 20_000_000, "choose another seed: the cable is not used"
    fault = f"faults=[{{at_ns: {CUT_NS}, action: down, link: leaf1-{CUT_SPINE}}}]"
    cut = run("link-failure", *base, fault, "reroute_ns=300us", seed=CUT_SEED)
    assert set(cut.drops) <= {"port_down", "link_cut"}
    for who, way in (("what leaf1 sends", "leaf1>{}"), ("what others send it", "{}>leaf1")):
        stood = _resumes_after(cut, way)
        yield f"{who} takes another way after", f"{stood / 1000:.0f} us"
        assert stood < 1_000_000
    lost = sum(cut.drops.values())
    yield "lost with the cable, or sent into it", f"{lost:,} packets, all sent again and arrived"
    change = max(abs(cut.times_ns[n] / whole.times_ns[n] - 1) for n in (2, 3))
    yield "flows elsewhere differ by", f"{change:.2%}"
    assert change < (0.001 if run.place is Place.SIM else 0.05)


CUT_SEED = 10


def _resumes_after(outcome: Outcome, way: str) -> int:
    """How long after the cut the other links this way have carried more than acknowledgements."""
    links = {way.format(f"spine{number}") for number in (2, 3, 4)}
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for note in outcome.timeseries():
        if note["link"] in links:
            when, so_far = int(note["time_ns"]), int(note["bytes"])
            if when <= CUT_NS:
                before[note["link"]] = so_far
            after[note["link"]] = so_far
            if sum(after.values()) - sum(before.values()) > 100_000:
                return when - CUT_NS
    raise AssertionError(f"nothing took another way {way}")


def deadlock(run: Runner) -> Figures:
    """Queues that wait for one another in a circle: for ever, or until the watchdog lets one go."""
    locked = run("deadlock", "pfc.watchdog_ns=0", "limit_ns=20ms")
    arrived = locked.result["flows"]["completed"]
    yield "no watchdog", f"after 20 ms {arrived} of {locked.result['flows']['count']} arrived"
    assert arrived < locked.result["flows"]["count"]
    assert locked.drops.get("watchdog", 0) == 0
    circle = {"spine1>leaf2", "leaf2>spine2", "spine2>leaf4", "leaf4>spine1"}
    paused = locked.result["pfc"]["by_link"]
    stood = {name: paused[name]["paused_ns"] / locked.result["duration_ns"] for name in circle}
    yield "stand still on the circle", ", ".join(f"{n} {s:.0%}" for n, s in sorted(stood.items()))
    assert min(stood.values()) > 0.5

    broken = run("deadlock")
    storms = broken.result["pfc"]["storms"]
    yield "watchdog named", ", ".join(f"{name} ({times})" for name, times in storms.items())
    yield "at the price of", f"{broken.drops['watchdog']:,} packets; all messages arrived"
    assert circle & set(storms)
    assert len(broken.times_ns) == broken.result["flows"]["count"]


# --- thresholds -----------------------------------------------------------------------------------

# A sender at full rate, a receiver that stands still, and a way back busy with the largest frames.
STANDSTILL = (
    "topology={kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2}",
    *("link.delay_ns=10us", "buffer.bytes=4MB", "pfc.watchdog_ns=0", "limit_ns=400us"),
    "faults=[{at_ns: 0, action: storm, host: h2, for_ns: 1ms}]",
    "traffic={kind: mix, parts: ["
    "{kind: flows, name: held, flows: [{src: h1, dst: h2, bytes: 8MB}]}, "
    "{kind: flows, name: back, priority: 0, flows: [{src: h2, dst: h1, bytes: 8MB}]}]}",
)


def reaction(run: Runner) -> Figures:
    """From a pause frame to silence: in the time granted, and within the headroom computed."""
    captured = run("incast", "traffic.bytes=1MB", CAPTURED, dilation=UNHURRIED)
    reactions = captured.reactions()
    slowest = max(reactions, key=lambda reaction: reaction.took_ns)
    most = max(reactions, key=lambda reaction: reaction.came)
    yield (
        f"{len(reactions)} pauses of an incast",
        (
            f"silence after {slowest.took_ns / 1000:.2f} us at most, "
            f"granted are {slowest.granted_ns / 1000:.2f}; "
            f"{most.came:,} bytes at most came meanwhile, there was room for {most.room:,}"
        ),
    )
    assert captured.drops == {}
    assert len(reactions) > 20
    assert slowest.took_ns <= slowest.granted_ns
    assert most.came <= most.room

    settings = captured.experiment.settings
    link = replace(settings.host_link, delay_ns=10_000)
    sizes = [
        needed(cable, settings.max_frame, settings.pfc.response_ns)
        for cable in (link, replace(link, delay_ns=0))
    ]
    lost = [
        run("incast", *STANDSTILL, f"pfc.headroom={size}", dilation=UNHURRIED).drops
        for size in sizes
    ]
    for size, drops in zip(sizes, lost, strict=True):
        yield f"{size:,} bytes, 2 km of cable", f"{drops.get('headroom_full', 0)} frames lost"
    assert lost[0] == {}
    assert lost[1]["headroom_full"] > 20


def headroom(_run: Runner) -> Figures:
    """The worst case a pause can meet: headroom as computed loses nothing, a frame less does."""
    for name, link in test_pause.LINKS.items():
        computed = test_pause.computed_headroom(link)
        lost = [test_pause.worst_overrun(size, link) for size in (None, computed - FRAME)]
        yield name, f"{computed:,} bytes lose {lost[0]} frames, {FRAME} bytes less lose {lost[1]}"


# Two senders fill the queue of a third again and again, by more than Kmax.
RAMPS = (
    "topology={kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 3}",
    *("link.mtu=256", "pfc.enabled=false", "buffer.bytes=16MB", "int.share=1"),
    "ecn={enabled: true, kmin: 20KB, kmax: 180KB, pmax: 0.2}",
    "traffic={kind: incast, senders: 2, bytes: 200KB, messages: 64}",
)
DEPTHS_TOGETHER, MIN_PACKETS = 10_000, 2000


def _ramps(run: Runner) -> Figures:
    """The marks of a queue that fills and empties, by the depth telemetry tells of each packet."""
    outcome = run("incast", *RAMPS, CAPTURED)
    curve = outcome.experiment.settings.ecn
    off = defaultdict(list)
    for report in reported(outcome.out / "pcaps", outcome.experiment.fabric.node("leaf1")):
        depth = report.hops[0].queue_bytes or 0
        due = test_mark.curve(depth, curve.kmin, curve.kmax, curve.pmax)
        off[depth // DEPTHS_TOGETHER].append((ecn_of(report.packet) == ECN_CONGESTED) - due)
    full = [some for some in off.values() if len(some) > MIN_PACKETS]
    worst = max(abs(sum(some) / len(some)) for some in full)
    yield (
        f"a queue of up to {max(off) * DEPTHS_TOGETHER:,} bytes, {sum(map(len, full)):,} packets",
        f"in steps of {DEPTHS_TOGETHER:,} bytes never more than {worst:.2%} off",
    )
    assert (max(off) + 1) * DEPTHS_TOGETHER > curve.kmax
    assert len(full) >= curve.kmax / DEPTHS_TOGETHER
    assert worst < 0.02


def ecn(run: Runner) -> Figures:
    """The share of marked packets against the depth of their queue: as the curve says."""
    if run.place is Place.SIM:
        for kmin, kmax, pmax in test_mark.CURVES:
            worst = test_mark.worst_deviation(kmin, kmax, pmax)
            yield f"Kmin {kmin:,}, Kmax {kmax:,}, Pmax {pmax}", f"never more than {worst:.2%} off"
            assert worst < 0.02
        return
    if run.place is Place.MININET:
        yield from _ramps(run)
    # BMv2 is slow: it gets fewer packets, and 25 depths are judged together.
    switch, together = ("bmv2", 25) if run.place is Place.BMV2 else ("soft", 1)
    shares = test_mark.shares_on_veths(switch)
    worst = test_mark.worst_of(shares, together)
    yield f"{len(shares)} depths, {together} at a time", f"never more than {worst:.2%} off"
    assert worst < 0.02


Show = Callable[[Runner], Figures]
SHOWS: dict[str, Show] = {
    show.__name__: show
    for show in (
        *(incast, mixed, steady, resting, degraded, failure, deadlock),
        *(reaction, headroom, ecn),
    )
}
SHOWN_AT: dict[Place, tuple[str, ...]] = {
    Place.SIM: tuple(SHOWS),
    # When a worst case comes, to the frame, only a virtual clock decides.
    Place.MININET: tuple(name for name in SHOWS if name != "headroom"),
    Place.BMV2: ("incast", "mixed", "steady", "resting", "degraded", "ecn"),
}


def main() -> None:
    """Print figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.fabric.shows")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHOWS))
    parser.add_argument("--engine", choices=("sim", "mininet"), default="sim")
    parser.add_argument(
        "--switch", choices=("soft", "bmv2"), default="soft", help="bmv2 means --engine mininet"
    )
    parser.add_argument("--out", type=Path, help="keep the runs here")
    chosen = parser.parse_args()
    place = Place.BMV2 if chosen.switch == "bmv2" else Place(chosen.engine)
    shown = SHOWN_AT[place]
    if unknown := set(chosen.names) - set(shown):
        parser.error(f"there is no {', '.join(unknown)} here; there are {', '.join(shown)}")
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(place, chosen.out or Path(folder), tells=True)
        for name in chosen.names or shown:
            print(f"{name}: {(SHOWS[name].__doc__ or '').splitlines()[0]}")
            for what, figure in SHOWS[name](run):
                print(f"    {what}: {figure}", flush=True)


if __name__ == "__main__":
    main()
