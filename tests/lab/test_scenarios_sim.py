"""What each scenario says of itself, asserted of its run in the simulator."""

import csv
import math
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from statistics import median

import pytest

from lab.errors import RunError, ScenarioError
from lab.machine.speed import processor_slowness
from lab.results.percentiles import Percentiles
from lab.results.result import Result
from lab.scenario import shipped
from tests.lab.simulated import Run, simulate_sparely
from traffic.jobs import TrainingJob
from views.report.kept import read_run

RunScenario = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path) -> RunScenario:
    """Run a scenario, which must not take longer than anyone would wait."""
    runs = iter(range(100))

    def timed(name: str, *changes: str) -> Run:
        began = time.process_time()
        found = simulate_sparely(name, *changes, out=tmp_path / str(next(runs)))
        assert time.process_time() - began < 60 * processor_slowness()
        return found

    return timed


def test_none_is_forgotten() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals()}
    assert set(shipped.names()) <= tested


def fct(result: Result, part: str | None = None) -> Percentiles:
    """The completion times of all messages, or of a part's."""
    flows = result.flows if part is None else (result.parts or {})[part]
    assert flows.fct_ns is not None
    return flows.fct_ns


def jct(result: Result) -> int:
    assert result.jct_ns is not None
    return result.jct_ns


def busbw(result: Result) -> float:
    assert result.collective is not None and result.collective.busbw_gbps is not None
    return result.collective.busbw_gbps


def utilisation(result: Result) -> float:
    assert result.gpu_utilisation is not None
    return result.gpu_utilisation


def paused(result: Result, *links: str) -> int:
    """How long these directions of links stood still, all together."""
    pauses = result.pfc.by_link
    return sum(pauses[link].paused_ns for link in links if link in pauses)


def test_hello(run: RunScenario) -> None:
    """Everything arrives; no spine is idle, but they are not evenly loaded."""
    found = run("hello")
    assert found.result.flows.completed == 8 * 7
    assert found.result.drops.total == 0
    for leaf in range(1, 5):
        assert min(found.links(f"leaf{leaf}>spine").values()) > 0
    assert len(set(found.links("leaf1>spine").values())) > 1


def test_incast(run: RunScenario) -> None:
    """Nothing is lost, the last hop pauses both spines, and the receiver's link is the limit."""
    found = run("incast")
    result = found.result
    assert result.drops.total == 0
    assert result.roce.retransmitted_packets == 0
    pauses = result.pfc.by_link
    for link in ("spine1>leaf1", "spine2>leaf1", "h2>leaf1"):
        assert pauses[link].xoff_frames > 0
    senders = [pauses[f"h{number}>leaf{(number + 1) // 2}"] for number in range(2, 9)]
    assert all(pause.paused_ns > 0 for pause in senders)
    alone_ns = 7 * 2_000_000 * 8 / 100
    assert alone_ns < fct(result).max < 1.03 * alone_ns
    use = {use.name: use.utilisation for use in result.links}
    assert use["leaf1>h1"] > 0.95

    without = run("incast", "pfc.enabled=false", "transport.timeout=10").result
    assert without.drops.by_reason["buffer_full"] > 0
    assert without.pfc.xoff_frames == 0
    assert fct(without).max > fct(result).max


def test_hash_collision(run: RunScenario) -> None:
    """Some uplinks are idle beside full ones; sprayed none is, for better or for worse."""
    spray, selective = "lb.policy=spray", "transport.recovery=selective"
    collided, sprayed = run("hash-collision"), run("hash-collision", spray, selective)
    assert fct(sprayed.result).max < 0.6 * fct(collided.result).max
    assert fct(run("hash-collision", spray).result).max > 3 * fct(collided.result).max
    up = [collided.links(f"leaf{leaf}>spine").values() for leaf in range(1, 5)]
    assert any(min(loads) < 0.1 * max(loads) for loads in up)
    for leaf in range(1, 5):
        loads = sprayed.links(f"leaf{leaf}>spine").values()
        assert min(loads) > 0.7 * max(loads)


def test_allreduce_ring(run: RunScenario) -> None:
    """No queue to speak of, and bus bandwidth near the rate of a port."""
    result = run("allreduce-ring").result
    assert 90 < busbw(result) < 100
    assert result.drops.total == 0
    assert result.pfc.xoff_frames == 0
    assert max(use.max_queue_bytes or 0 for use in result.links) < 20_000


def test_allreduce_tree(run: RunScenario) -> None:
    """For little data trees are sooner than a ring, for much the ring is."""
    ring, much = "traffic.algorithm=ring", "traffic.bytes=16MB"
    assert jct(run("allreduce-tree").result) < 0.8 * jct(run("allreduce-tree", ring).result)
    assert jct(run("allreduce-tree", much).result) > jct(run("allreduce-tree", much, ring).result)


def test_alltoall(run: RunScenario) -> None:
    """All links work at once, and some flows wait for others."""
    result = run("alltoall").result
    assert result.flows.completed == 56
    assert result.drops.total == 0
    assert all(use.bytes > 1_000_000 for use in result.links if ">h" in use.name)
    assert result.flows.slowdown is not None
    assert result.flows.slowdown.max > 2


def test_degraded_uplink(run: RunScenario) -> None:
    """One flow crosses the slow link, and the all-reduce has its rate; mended, that of a port."""
    slow, whole = run("degraded-uplink"), run("degraded-uplink", "link.slow.leaf1-spine1=1")
    assert slow.links("leaf1>spine1")["leaf1>spine1"] < 100_000  # acknowledgements
    down = slow.links("spine1>leaf1")["spine1>leaf1"]
    assert 14_000_000 < down < 14_500_000  # a rank's chunks, and their headers
    assert 23 < busbw(slow.result) < 25
    assert busbw(whole.result) > 90
    assert slow.result.drops.total == 0
    falls = "faults=[{at_ns: 600us, action: slow, link: leaf1-spine1, share: 0.25}]"
    meanwhile = run("degraded-uplink", "link.slow.leaf1-spine1=1", falls)
    left = jct(whole.result) - 600_000
    at_a_quarter = jct(slow.result) / jct(whole.result)
    assert jct(meanwhile.result) == pytest.approx(600_000 + at_a_quarter * left, rel=0.1)


def test_oversubscription(run: RunScenario) -> None:
    """With one uplink for four hosts it takes more than twice as long as with four."""
    tight, wide = run("oversubscription"), run("oversubscription", "topology.spines=4")
    assert jct(tight.result) > 2 * jct(wide.result)
    assert tight.result.drops.total == wide.result.drops.total == 0
    schedule, timeline = tight.experiment.schedule, tight.outcome.timeline
    hosts, leaf_of = tight.experiment.fabric.hosts, tight.experiment.fabric.leaf_of
    times: dict[bool, list[int]] = {True: [], False: []}
    for number, (src, dst) in enumerate(zip(schedule.src, schedule.dst, strict=True)):
        if src != dst:
            stays = leaf_of(hosts[src]) == leaf_of(hosts[dst])
            times[stays].append(timeline.end_ns[number] - timeline.start_ns[number])
    assert median(times[True]) < 0.5 * median(times[False])
    use = {use.name: use.utilisation for use in tight.result.links}
    assert min(use[f"leaf{leaf}>spine1"] for leaf in range(1, 5)) > 0.85


def test_straggler(run: RunScenario) -> None:
    """One slow GPU costs as much as eight."""
    one = run("straggler").result
    none = run("straggler", "traffic.stragglers=[]").result
    everyone = run("straggler", "traffic.stragglers=[]", "traffic.compute_ns=1ms").result
    assert jct(one) > 1.6 * jct(none)
    assert jct(one) == pytest.approx(jct(everyone), rel=0.05)
    assert utilisation(one) < 0.7 * utilisation(none)


def test_lossy_link(run: RunScenario) -> None:
    """Going back to the lost packet sends far more again than sending what was lost."""
    back = run("lossy-link").result
    selective = run("lossy-link", "transport.recovery=selective").result
    for result in (back, selective):
        assert result.flows.failed == 0
        assert set(result.drops.by_reason) == {"injected_loss"}
        assert 5 < result.drops.total < 60
    assert selective.roce.retransmitted_packets < 2 * selective.drops.total
    assert back.roce.retransmitted_packets > 5 * back.drops.total
    assert fct(selective).max < fct(back).max
    assert selective.roce.timeouts == 0
    single = ("traffic.bytes=4KB", "loss.rate=0.3", "transport.recovery=selective")
    unlucky = run("lossy-link", *single).result
    assert unlucky.roce.timeouts > 0
    assert fct(unlucky).max > 4_000_000


def test_link_failure(run: RunScenario) -> None:
    """Lost is what was in the cable and what the far end had for it; in the end all arrives."""
    found = run("link-failure")
    result = found.result
    assert result.flows.failed == 0
    assert set(result.drops.by_reason) == {"link_cut", "port_down"}
    assert set(result.drops.by_switch) == {"leaf1", "spine1"}
    assert result.roce.timeouts > 0
    assert found.links("leaf1>spine2")["leaf1>spine2"] > 8_000_000

    unguided = run("link-failure", "reroute_ns=null").result
    assert unguided.drops.by_switch["spine1"] > 10 * result.drops.by_switch["spine1"]
    assert unguided.flows.failed > 0
    assert unguided.roce.qp_errors > 0


def test_victim_flow(run: RunScenario) -> None:
    """The victim shares no full link, and waits; without pauses it does not, and marks help."""
    paused = run("victim-flow").result
    lossy = run("victim-flow", "pfc.enabled=false").result
    marked = run("victim-flow", "ecn.enabled=true", "transport.cc=dcqcn").result
    assert paused.drops.total == marked.drops.total == 0
    victim = (paused.parts or {})["bystander"].slowdown
    assert victim is not None and 5 < victim.max < 6.5
    assert paused.pfc.by_link["spine1>leaf1"].paused_ns > 0
    assert paused.pfc.by_link["leaf2>spine1"].paused_ns > 0
    assert fct(lossy, "bystander").max < 0.25 * fct(paused, "bystander").max
    assert fct(lossy, "incast").max > 10 * fct(paused, "incast").max
    assert fct(marked, "bystander").max < 0.55 * fct(paused, "bystander").max


def test_pfc_storm(run: RunScenario) -> None:
    """Others stand still until the watchdog drops what is for h1; without one, for longer."""
    others = [f"h{number}>leaf{(number + 1) // 2}" for number in range(3, 9)]
    calm, watched, unwatched = (
        run("pfc-storm", *changes).result
        for changes in (("faults=[]",), (), ("pfc.watchdog_ns=0",))
    )
    assert calm.drops.total == unwatched.drops.total == 0
    assert set(watched.drops.by_reason) == {"watchdog"}
    assert watched.drops.by_switch["leaf1"] > 0.98 * watched.drops.total
    assert watched.flows.failed == 0
    assert paused(watched, *others) > 1.5 * paused(calm, *others)
    assert paused(unwatched, *others) > 1.4 * paused(watched, *others)


def test_deadlock(run: RunScenario) -> None:
    """It closes, and for good unless the watchdog breaks it; with all cables it never does."""
    broken = run("deadlock").result
    for_good = run("deadlock", "pfc.watchdog_ns=0", "limit_ns=20ms").result
    sound = run("deadlock", "faults=[]").result
    assert broken.flows.failed == 0
    assert set(broken.drops.by_reason) == {"watchdog"}
    assert for_good.flows.completed == 0
    assert for_good.drops.total == 0
    circle = ("spine1>leaf2", "leaf2>spine2", "spine2>leaf4", "leaf4>spine1")
    assert all(for_good.pfc.by_link[link].paused_ns > 19_000_000 for link in circle)
    assert sound.flows.failed == sound.drops.total == 0
    assert fct(broken).max > 10 * fct(sound).max


def test_noisy_neighbour(run: RunScenario) -> None:
    """Blue alone, beside red, and beside red of another class."""
    ring = "traffic.parts.1.flows=[{src: h4, dst: h2, bytes: 1}]"
    alone, beside, apart = (
        run("noisy-neighbour", *changes).result
        for changes in ((ring,), (), ("traffic.parts.1.priority=0",))
    )
    assert jct(beside) > 2 * jct(alone)
    assert beside.drops.total == 0
    assert jct(apart) < 1.05 * jct(alone)
    assert apart.drops.total > 0

    # Neither could reach the other.
    astray = "traffic.parts.1.flows=[{src: h4, dst: h1, bytes: 1KB}]"
    refused = run("noisy-neighbour", astray, "transport.retry_limit=0").result
    assert (refused.parts or {})["red"].failed == 1
    assert set(refused.drops.by_reason) == {"other_tenant"}


def test_north_south(run: RunScenario) -> None:
    """Best effort is dropped, the ring never: none of it waits for a time-out, only for links."""
    busy = run("north-south").result
    quiet = run("north-south", "traffic.parts.1.load=0.01").result
    assert jct(busy) > 1.1 * jct(quiet)
    assert busy.flows.failed == 0
    assert busy.drops.by_reason["buffer_full"] > 0
    time_out_ns = busy.scenario.transport.longest_rto_ns
    assert fct(busy, "north-south hadoop").max > time_out_ns > 10 * fct(busy, "collective").max


def test_rails(run: RunScenario) -> None:
    """Aligned nothing crosses a spine; at random most does, and GPUs wait."""
    aligned, anywhere = run("rails"), run("rails", "traffic.placement=random")
    assert sum(n for name, n in aligned.links("leaf").items() if ">spine" in name) == 0
    used = anywhere.links("leaf1>spine", "leaf2>spine", "leaf3>spine", "leaf4>spine")
    assert sum(used.values()) > 0.5 * sum(anywhere.links("h").values())
    assert utilisation(anywhere.result) < 0.4 * utilisation(aligned.result)


def check_training(run: RunScenario, name: str) -> None:
    """Busy for seven tenths; a slower network and a random placement both cost much of that."""
    usual = run(name)
    assert 0.65 < utilisation(usual.result) < 0.75
    assert usual.result.drops.total == usual.result.pfc.xoff_frames == 0
    assert isinstance(usual.experiment.scenario.traffic, TrainingJob)
    scale = usual.experiment.scenario.traffic.scale
    larger = run(name, f"traffic.scale={4 * scale}")
    assert utilisation(usual.result) < utilisation(larger.result) < 0.8
    for change in ("link.rate_gbps=25", "traffic.placement=random"):
        assert utilisation(run(name, change).result) < 0.8 * utilisation(usual.result)


def test_training_gpt3(run: RunScenario) -> None:
    """Aligned, as busy as alone; at random half as long again, of which spraying wins back."""

    def times(*changes: str) -> float:
        jobs = run("training-gpt3", *changes).result.jobs
        assert jobs is not None
        aligned, scattered = jobs["aligned"], jobs["scattered"]
        assert 0.65 < (aligned.gpu_utilisation or 0) < 0.75
        assert aligned.jct_ns and scattered.jct_ns
        return scattered.jct_ns / aligned.jct_ns

    usual = run("training-gpt3").result
    assert usual.drops.total == 0 < usual.pfc.xoff_frames
    assert usual.jct_ns == max(job.jct_ns or 0 for job in (usual.jobs or {}).values())
    lost = times() - 1
    assert 0.4 < lost < 0.6
    sprayed = times("lb.policy=spray", "transport.recovery=selective") - 1
    assert 0.1 < sprayed < 0.4 * lost


def test_training_llama(run: RunScenario) -> None:
    check_training(run, "training-llama")


def test_two_elephants(run: RunScenario) -> None:
    """Both on one uplink, the other idle; what parts them is in tests.fabric.shows."""
    result = run("two-elephants")
    assert sorted(result.links("leaf1>spine").values())[0] == 0
    assert result.result.drops.total == 0


def test_usid_steering(run: RunScenario) -> None:
    """A spine for each elephant; by the hash some share one, and take twice as long."""
    for ip in (4, 6):
        steered = run("usid-steering", f"link.ip={ip}")
        ways = steered.links("leaf1>spine").values()
        assert len(ways) == 4 and max(ways) == min(ways)
        assert steered.result.drops.total == 0
    hashed = run("usid-steering", "segments.enabled=false", "segments.policies=[]")
    assert min(hashed.links("leaf1>spine").values()) == 0
    assert hashed.result.duration_ns > 1.9 * steered.result.duration_ns


@pytest.mark.parametrize("subnets", ["leaf", "tenant"])
def test_evpn_tenants(run: RunScenario, subnets: str) -> None:
    """Both train at once with the same addresses, one pauses the other, and nothing is lost."""
    result = run("evpn-tenants", f"overlay.subnets={subnets}").result
    assert result.flows.completed == 48
    assert result.drops.total == 0
    assert result.pfc.xoff_frames > 0
    assert result.roce.retransmitted_packets == 0


def test_tenants_of_one_network_cannot_ask_for_anothers_host(run: RunScenario) -> None:
    with pytest.raises(ScenarioError, match="h1 has no address that is h2's"):
        run("evpn-tenants", "traffic={kind: flows, flows: [{src: h1, dst: h2, bytes: 1KB}]}")


def test_planes(run: RunScenario) -> None:
    """A host goes on with the ports it has left; a dead spine is nothing that one could see."""
    whole = fct(run("planes", "faults=[]").result).max
    found = run("planes")
    with (found.out / "flows.csv").open() as table:
        took = {row["src"]: float(row["fct_ns"]) for row in csv.DictReader(table)}
    # What h1 had still to send when its port died goes at three quarters of the rate.
    expected = 100_000 + (whole - 100_000) / 0.75
    assert expected * 0.99 < took["h1"] < expected + 10_000
    assert max(took[name] for name in ("h2", "h3", "h4")) < whole + 10_000
    result = found.result
    assert (result.flows.failed, result.roce.timeouts) == (0, 0)
    assert 0 < result.roce.retransmitted_packets <= result.drops.total
    blind = run("planes", "transport.entropy=oblivious").result
    assert fct(blind).max > 2 * fct(result).max


def test_a_plane_dies(run: RunScenario) -> None:
    """All go on by the others, and nothing is late for good."""
    dies = "faults=[{at_ns: 100us, action: down, plane: 2, for_ns: 100us}]"
    found = run("planes", dies).result
    assert (found.flows.failed, found.roce.timeouts) == (0, 0)
    lost_ns = 0.25 * 100_000
    assert fct(found).max < fct(run("planes", "faults=[]").result).max + lost_ns + 50_000


def test_path_health(run: RunScenario) -> None:
    """The way that loses is left after its first loss, and line rate stays."""
    whole = fct(run("path-health", "faults=[]").result).max
    found = run("path-health").result
    assert fct(found).max < 1.01 * whole
    blind = run("path-health", "transport.entropy=oblivious").result
    assert found.drops.total < 0.2 * blind.drops.total
    assert found.roce.retransmitted_packets <= found.drops.total  # probes are lost, too


def test_victim_mrc(run: RunScenario) -> None:
    """The victim keeps 97 % of its rate; pauses take more than half of it."""
    found = run("victim-mrc").result
    assert trimmed(found) > 0 and found.drops.total == 0
    assert found.parts is not None and found.parts["bystander"].slowdown is not None
    assert found.parts["bystander"].slowdown.max < 1 / 0.97
    school = ("transport={kind: roce}", "pfc.enabled=true", "trim.enabled=false")
    pauses = run("victim-mrc", *school, "ecn.enabled=false").result
    assert fct(pauses, "bystander").max > 1.25 * fct(found, "bystander").max


def test_a_dead_way_is_taken_out_of_the_lists(run: RunScenario) -> None:
    """What is steered over it waits for the controller, and all of it arrives."""
    found = run(
        "usid-steering",
        "segments.policies=[{at: leaf1, to: leaf2}]",
        "transport={recovery: selective, rto_ns: 100us, retry_limit: 100}",
        "reroute_ns=50us",
        "faults=[{at_ns: 60us, link: leaf1-spine2, action: down}]",
    ).result
    assert found.flows.completed == 4
    assert set(found.drops.by_reason) <= {"port_down", "link_down"}


@pytest.mark.parametrize("is_steered", [False, True])
def test_what_is_drained_is_left_and_nothing_is_lost(run: RunScenario, is_steered: bool) -> None:
    """From when it is told until it is used again, but for what was on its way."""
    policies = "[{at: leaf1, to: leaf2}]" if is_steered else "[]"
    common = (f"segments={{enabled: {str(is_steered).lower()}, policies: {policies}}}",
              "traffic={kind: collective, op: all-to-all, bytes: 4MB}")  # fmt: skip
    whole, never, meanwhile = (
        run("usid-steering", *common, f"faults=[{faults}]")
        for faults in (
            "",
            "{at_ns: 0, action: drain, link: leaf1-spine2}",
            "{at_ns: 50us, action: drain, switch: spine2, for_ns: 200us}",
        )
    )
    for each in (whole, never, meanwhile):
        assert each.result.drops.total == 0
        assert each.result.flows.completed == 56
    for way in ("leaf1>spine2", "spine2>leaf1"):
        used = [each.links(way)[way] for each in (whole, never, meanwhile)]
        assert used[1] == 0 < used[2] < 0.9 * used[0]


def test_congestion_signals(run: RunScenario) -> None:
    """By pauses alone who has two bottlenecks is slowed most; what tells a sender more, or sooner,
    saves pauses."""
    runs = {
        name: run("congestion-signals", *changes)
        for name, changes in {
            "nothing": ("transport.cc=none",),
            "marks": ("transport.cc=dcqcn",),
            "switches": ("transport.cc=dcqcn", "ecn.fast_cnp=true"),
            "tags": (),
        }.items()
    }
    slowest = max(read_run(runs["nothing"].out).flows, key=lambda flow: flow.slowdown or 0)
    assert slowest.src == "h1"
    results = {name: found.result for name, found in runs.items()}
    paused = {name: found.pfc.paused_ns for name, found in results.items()}
    assert paused["tags"] < paused["switches"] < paused["marks"] < paused["nothing"] / 4
    assert all(found.flows.completed == 8 and not found.drops.total for found in results.values())
    assert (results["switches"].roce.fast_cnps or 0) > 20 > results["switches"].roce.cnps
    assert fct(results["tags"]).max < 1.15 * fct(results["nothing"]).max


def test_path_trace(run: RunScenario) -> None:
    """Where packets stay, by traces as by INT-MD; traces need their room from the first leaf on."""
    traced, by_md = (run("path-trace", f"int.format={each}").result for each in ("ioam", "int-md"))
    packets = 5 * 98
    for result in (traced, by_md):
        assert result.telemetry is not None and result.drops.total == 0
        assert result.telemetry.reports > packets
        stays = {
            name: hop.latency_ns.p50
            for name, hop in result.telemetry.by_switch.items()
            if hop.latency_ns
        }
        slow = {name for name, ns in stays.items() if ns > 10_000}
        assert slow == {"leaf1", "spine1", "spine2"}
    whole = [sum(link.bytes for link in result.links) for result in (traced, by_md)]
    assert whole[1] < whole[0] < 1.05 * whole[1]
    queues = [{link.name: link.max_queue_bytes for link in r.links} for r in (traced, by_md)]
    assert queues[0]["leaf2>spine1"] > 1.5 * queues[1]["leaf2>spine1"]


def test_own_algorithm(run: RunScenario) -> None:
    """An algorithm that is brought holds senders back as the built-in one does; without, more is
    cut."""
    brought, own, none = (
        run("own-algorithm", *changes).result
        for changes in ((), ("transport.cc=swift",), ("transport.cc=none",))
    )
    assert brought.flows == own.flows
    assert brought.trim and none.trim
    assert brought.trim.cut_packets < none.trim.cut_packets / 2


def test_joules(run: RunScenario) -> None:
    """Energy follows the time, whatever made it long, and copper saves what optics take."""
    variants = {
        "as it ships": (),
        "whole": ("loss.rate=0",),
        "selective": ("transport.recovery=selective",),
        "copper": ("energy.fabric_optics=dac",),
    }
    found = {name: run("joules", *changes).result for name, changes in variants.items()}
    joules = {name: each.energy.total_j for name, each in found.items() if each.energy}
    longer = found["as it ships"].duration_ns / found["whole"].duration_ns
    assert joules["as it ships"] / joules["whole"] == pytest.approx(longer, rel=0.06)
    assert joules["selective"] < joules["as it ships"] / 2
    assert joules["copper"] < 0.85 * joules["as it ships"]
    assert found["copper"].duration_ns == found["as it ships"].duration_ns


def test_in_network_allreduce(run: RunScenario) -> None:
    """Every link carries the data once each way: it takes little more than half of a ring's time;
    losses on the way leave the sums right."""
    here = run("in-network-allreduce").result
    ring = run("in-network-allreduce", "traffic.algorithm=ring").result
    lossy = run("in-network-allreduce", "loss={rate: 0.001, links: [leaf1-spine2]}").result
    assert 0.5 * jct(ring) < jct(here) < 0.62 * jct(ring)
    assert here.inc is not None and lossy.inc is not None
    assert here.drops.total == here.inc.wrong_results == lossy.inc.wrong_results == 0
    assert here.inc.parts == 8 * 1954 and lossy.inc.parts_again > 0
    assert jct(lossy) < 1.5 * jct(here)


def test_reliable_tree(run: RunScenario) -> None:
    """What a cable spoils its ends send again, and no host any part; it takes about as long."""
    here = run("reliable-tree").result
    by_hosts = run("reliable-tree", "link.llr=none").result
    assert here.inc is not None and here.llr is not None and by_hosts.inc is not None
    assert here.drops.total == here.inc.parts_again == here.inc.wrong_results == 0
    assert here.llr.spoilt_frames == here.llr.replayed_frames > 0
    assert by_hosts.inc.parts_again > by_hosts.drops.by_reason["injected_loss"] > 0
    assert jct(here) == pytest.approx(jct(by_hosts), rel=0.05)


def _sue_wire(size: int, messages: int = 1, mtu: int = 3840) -> int:
    """What the wire takes of messages that wait together (docs/scale-up.md): each is stores of 256
    bytes and 12 besides, and so many stores as fit have 38 bytes of headers and 24 around them."""
    stores = messages * math.ceil(size / 256)
    return messages * size + 12 * stores + math.ceil(stores / (mtu // 256)) * (38 + 24)


def test_scale_up(run: RunScenario) -> None:
    """It takes as long as its bytes take the wire, nothing is lost or stands still, small stores
    go together, not one by one as RoCEv2's."""
    found = run("scale-up").result
    to_each = 32 * 8 // 16  # tokens
    times_ns = [15 * _sue_wire(to_each * size) * 8 / 400 for size in (7392, 14336)]
    assert jct(found) == pytest.approx(sum(times_ns) + 10_000, rel=0.05)
    assert found.drops.total == found.pfc.xoff_frames == found.roce.retransmitted_packets == 0
    flows = [f"{{src: h{a}, dst: h{b}, bytes: 256}}" for a, b in permutations(range(1, 5), 2)]
    small = (
        "topology.hosts_per_leaf=4",
        f"traffic={{kind: flows, flows: [{', '.join(60 * flows)}]}}",
    )
    by_sue = run("scale-up", *small).result
    by_roce = run("scale-up", *small, "transport.kind=roce").result
    assert by_sue.roce.data_packets == 12 * 4 and by_roce.roce.data_packets == 12 * 60
    wire = [3 * _sue_wire(256, 60), 3 * 60 * (256 + 14 + 20 + 8 + 12 + 16 + 4 + 4 + 24)]
    ends_ns = [each.duration_ns for each in (by_sue, by_roce)]
    assert ends_ns[0] / ends_ns[1] == pytest.approx(wire[0] / wire[1], rel=0.15)


def test_delivery_modes(run: RunScenario) -> None:
    """In order much goes again for each loss, out of order what was lost, datagrams never."""
    rod, rud, uud = (
        run("delivery-modes", f"transport.delivery={mode}").result for mode in ("rod", "rud", "uud")
    )
    assert rod.flows.failed == rud.flows.failed == 0 < uud.flows.failed
    assert rod.roce.retransmitted_packets > 20 * rod.drops.total > 0
    assert rud.roce.retransmitted_packets < 2 * rud.drops.total
    assert uud.roce.retransmitted_packets == 0 < uud.drops.total
    assert all(each.flows.fct_ns is not None for each in (rod, rud))
    assert rod.flows.fct_ns.max > 1.1 * rud.flows.fct_ns.max


def test_encrypted(run: RunScenario) -> None:
    """Keys change and nothing is lost; 24 bytes more a packet cost more where packets are small."""
    found = run("encrypted").result
    assert found.security is not None and found.trim is not None
    assert (found.security.domains, found.security.rekeyed) == (2, 2)
    assert found.security.refused_packets == found.flows.failed == found.drops.total == 0
    assert found.trim.cut_packets > 0
    small = [
        run("encrypted", "link.mtu=256", f"transport.security.enabled={word}").result
        for word in ("true", "false")
    ]
    assert jct(small[0]) > 1.03 * jct(small[1])


def test_degraded_path(run: RunScenario) -> None:
    """conga goes round, dlb does not; over several seeds in tests.fabric.shows."""
    conga, dlb = (run("degraded-path", f"lb.policy={policy}") for policy in ("conga", "dlb"))
    assert conga.result.duration_ns < 0.93 * dlb.result.duration_ns
    slow = [sum(found.links("spine1>leaf2").values()) for found in (conga, dlb)]
    assert slow[0] < 0.7 * slow[1]


def trimmed(result: Result) -> int:
    """Packets cut; each was told of, unless its whole had come, or lost and counted."""
    assert result.trim is not None
    cut = result.trim
    assert cut.cut_packets == cut.arrived_packets + cut.lost_packets
    assert cut.arrived_packets == result.roce.naks + cut.known_packets
    return cut.cut_packets


def test_trim_incast(run: RunScenario) -> None:
    """Nothing is dropped, what was cut goes again, and the link is busy to the end."""
    found = run("trim-incast").result
    cut = trimmed(found)
    assert found.drops.total == found.pfc.xoff_frames == 0
    assert 400 < cut <= found.roce.retransmitted_packets < 1.01 * cut
    assert found.duration_ns < 1.1 * 15 * 500_000 * 8 / 100
    assert trimmed(run("trim-incast", "traffic.bytes=1500KB").result) < 2 * cut
    assert trimmed(run("trim-incast", "transport.cc=rccc").result) < 1.5 * cut
    dropped = run("trim-incast", "trim.enabled=false").result
    assert dropped.drops.by_reason["buffer_full"] > 100
    assert dropped.flows.failed == 0


def test_spray_permutation(run: RunScenario) -> None:
    """Sprayed, uplinks share alike and all are done together; on one way each, flows collide."""
    found = run("spray-permutation")
    ways = found.links("leaf1>spine").values()
    assert max(ways) < 1.5 * min(ways)
    assert trimmed(found.result) < 20
    assert found.result.drops.total == 0
    collided = run("spray-permutation", "transport.entropy=single")
    assert min(collided.links("leaf1>spine").values()) < 0.01 * 2_000_000
    assert fct(collided.result).max > 1.7 * fct(found.result).max


def test_degraded_spray(run: RunScenario) -> None:
    """Entropies that come back unmarked lead round a slow link that no switch knows of."""
    ends, slow = {}, {}
    for policy in ("reps", "bitmap", "oblivious"):
        found = run("degraded-spray", f"transport.entropy={policy}")
        ends[policy] = fct(found.result).max
        ways = found.links("leaf1>spine")
        slow[policy] = ways["leaf1>spine1"] / sum(ways.values())
    assert max(slow["reps"], slow["bitmap"]) < 0.08
    assert slow["oblivious"] > 0.15
    assert ends["oblivious"] > 3 * max(ends["reps"], ends["bitmap"])


def test_pfc_or_trim(run: RunScenario) -> None:
    """The victim of the one school is nobody's in the other, and the incast takes as long."""
    trims = run("pfc-or-trim").result
    other = ("pfc.enabled=true", "trim.enabled=false", "transport.kind=roce", "transport.cc=none")
    pauses = run("pfc-or-trim", *other).result
    assert trimmed(trims) > 100
    assert trims.drops.total == trims.pfc.xoff_frames == pauses.drops.total == 0
    assert fct(pauses, "bystander").max > 5 * fct(trims, "bystander").max
    assert fct(trims, "incast").max < 1.05 * fct(pauses, "incast").max


def test_cluster_day(run: RunScenario) -> None:
    """All forty jobs end; placed by racks the fabric slows them less than spread over all."""
    days = {
        placement: run("cluster-day", f"traffic.placement={placement}", "measures.flows=false")
        for placement in ("topology-aware", "spread")
    }
    aware, spread = (day.result.cluster for day in days.values())
    assert aware is not None and spread is not None
    assert aware.completed == spread.completed == 40
    assert aware.slowdown is not None and spread.slowdown is not None
    assert aware.slowdown.p50 < spread.slowdown.p50
    assert aware.racks < spread.racks
    assert aware.fragmentation < spread.fragmentation


def test_hot_experts(run: RunScenario) -> None:
    """Even, the same tokens are back in half the time or less."""
    found, even = run("hot-experts"), run("hot-experts", "traffic.skew=0")
    arrived = sorted(u.bytes for u in found.result.links if ">h" in u.name)
    assert arrived[-1] > 2 * arrived[0]
    assert jct(even.result) < 0.5 * jct(found.result)
    assert found.result.drops.total == 0


def test_kv_cache(run: RunScenario) -> None:
    """Moved while it is computed, a cache costs less; at one spine caches wait for each other."""
    served = [
        run("kv-cache", *changes).result.inference
        for changes in ((), ("traffic.pieces=1",), ("topology.spines=1",))
    ]
    layers, whole, narrow = (each.ttft_ns for each in served if each is not None)
    assert layers is not None and whole is not None and narrow is not None
    assert layers.p50 < 0.9 * whole.p50
    assert narrow.p50 > 2 * layers.p50


def test_checkpoint_burst(run: RunScenario) -> None:
    """The burst costs a step most in the same class, less in another, and the first none at all."""
    own = ("traffic.parts.1.priority=2", "pfc.priorities=[2, 3]")
    steps = [
        [
            (step.end_ns or 0) - step.start_ns
            for step in run("checkpoint-burst", *changes).result.steps or ()
        ]
        for changes in (("traffic.parts.1.save=1",), (), own)
    ]
    without, beside, apart = steps
    assert beside[0] == apart[0] == without[0]
    assert beside[1] > 1.4 * without[1]
    assert without[1] < apart[1] < 0.9 * beside[1]


def step_times(result: Result) -> list[int]:
    return [(step.end_ns or 0) - step.start_ns for step in result.steps or ()]


def test_servers_inside(run: RunScenario) -> None:
    """A ring in a server takes NCCL's launch, and for each of its 14 steps a latency and a shard's
    time at a channel's part of the port; over two servers no packet sees a spine."""
    traffic = "traffic={kind: collective, op: all-reduce, bytes: %d, channels: 8, node_size: 8, "
    shape = "topology={kind: rail, servers: %d, rails: 8, spines: 1, scale_up_gbps: 800}"
    size = 8 * 8 * 8 * 4096
    alone = run("rails", shape % 1, traffic % size + "protocol: simple}").result
    wire_ns = size / 8 * 8 / 800 * (4096 + 82) / 4096
    assert alone.duration_ns == pytest.approx(8400 + 14 * (3400 + wire_ns), rel=0.05)
    both = run("rails", shape % 2, traffic % size + "protocol: simple}").result
    used = {link.name: link.bytes for link in both.links}
    assert not any(carried for name, carried in used.items() if "spine" in name)
    rails = [used[f"h{gpu}>leaf{(gpu - 1) % 8 + 1}"] for gpu in range(1, 17)]
    assert 0 < max(rails) <= 1.02 * min(rails)


def test_channels_share_ports_that_differ(run: RunScenario) -> None:
    """A GPU's second port and a server's only one lead into the same fabric."""
    traffic = "traffic={kind: collective, op: all-reduce, bytes: 64KB, channels: 2, protocol: ll, "
    result = run("two-fabrics", traffic + "ranks: [h1, h9, h2, h10]}").result
    assert result.flows.completed == result.flows.count > 0


def test_two_fabrics(run: RunScenario) -> None:
    """A burst in the front-end is nothing to the back-end; in one fabric for all it costs a step
    more than half as much again, and nothing once it is over."""
    shared = "topology={kind: leaf-spine, leaves: 3, spines: 4, hosts_per_leaf: 4}"
    beside, without, together = (
        run("two-fabrics", *changes).result
        for changes in ((), ("traffic.parts.1.save=1",), (shared,))
    )
    assert step_times(beside) == pytest.approx(step_times(without), rel=0.01)
    first, burst, _, last = step_times(together)
    assert burst > 1.5 * step_times(without)[1]
    assert (first, last) == pytest.approx(
        (step_times(without)[0], step_times(without)[3]), rel=0.01
    )
    used = {link.name: link.bytes for link in beside.links}
    into_servers = sum(used[f"leaf{3 + at // 2}>h{9 + at}"] for at in range(4))
    assert into_servers > 8_000_000
    slow = run("two-fabrics", "topology.front_rate_gbps=25").result
    assert step_times(slow) == pytest.approx(step_times(without), rel=0.01)
    parts = (slow.parts or {})["checkpoint"], (beside.parts or {})["checkpoint"]
    slower, quick = (part.fct_ns.max for part in parts if part.fct_ns is not None)
    assert 3.5 < slower / quick < 4.5


def test_dual_tor(run: RunScenario) -> None:
    """The job goes on without a leaf, or without a port, and does not where there is one leaf."""
    whole = run("dual-tor", "faults=[]").result
    assert (whole.drops.total, whole.roce.retransmitted_packets) == (0, 0)
    leaf = run("dual-tor").result
    port = run("dual-tor", "faults=[{at_ns: 400us, action: down, link: h1-leaf1}]").result
    for found in (leaf, port):
        assert found.flows.failed == found.roce.qp_errors == 0
        assert found.drops.total > 0
        assert step_times(found)[3] < 1.5 * step_times(whole)[3]
    single = "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}"
    assert run("dual-tor", single).result.flows.failed > 0
    back = "faults=[{at_ns: 400us, action: down, switch: leaf1, for_ns: 300us}]"
    assert step_times(run("dual-tor", back).result)[3] < 1.05 * step_times(whole)[3]
    sprayed = "transport={kind: uet, cc: nscc, entropy: mrc, timeout: 10}"
    assert run("dual-tor", sprayed, "ecn.kmin=30KB", "ecn.kmax=120KB").result.flows.failed == 0


def test_dragonfly(run: RunScenario) -> None:
    """Four cables are full; with less memory pauses go round in a circle, and nobody sends."""
    found = run("dragonfly").result
    use = {link.name: link.utilisation for link in found.links}
    full = ("leaf1>leaf6", "leaf4>leaf9", "leaf7>leaf12", "leaf10>leaf3")
    assert min(use[link] for link in full) > 0.9
    assert max(use[f"{a}>{b}"] for a, b in (("leaf2", "leaf8"), ("leaf5", "leaf11"))) < 0.02
    stuck = run("dragonfly", "buffer.bytes=4MB", "pfc.watchdog_ns=1ms").result
    assert stuck.drops.by_reason["watchdog"] > 0
    assert stuck.pfc.storms
    spread = run("dragonfly", "traffic={kind: all-pairs}").result
    assert spread.pfc.xoff_frames == 0


def refused(name: str, out: Path) -> None:
    """BGP goes by another clock than the simulator's, which says so; a controller does not."""
    with pytest.raises(RunError, match=r"control\.kind: BGP goes by the machine's clock"):
        simulate_sparely(name, out=out)


def test_bgp_clos(run: RunScenario, tmp_path: Path) -> None:
    """Told by a controller, routes lead round the cable as in link-failure."""
    refused("bgp-clos", tmp_path)
    result = run("bgp-clos", "control.kind=p4runtime", "reroute_ns=500us").result
    assert result.flows.failed == 0
    assert set(result.drops.by_reason) == {"link_cut", "port_down"}


def test_silent_failure(run: RunScenario, tmp_path: Path) -> None:
    """A controller does not notice at all: what goes that way is lost, again and again."""
    refused("silent-failure", tmp_path)
    result = run("silent-failure", "control.kind=p4runtime", "limit_ns=5ms").result
    assert result.flows.failed > 0
    assert set(result.drops.by_reason) == {"injected_loss"}


def test_leaf_restart(run: RunScenario, tmp_path: Path) -> None:
    """A switch that starts again with empty tables drops until its controller has noticed."""
    refused("leaf-restart", tmp_path)
    emptied = ("control.kind=p4runtime", "faults.0.action=restart")
    result = run("leaf-restart", *emptied).result
    assert result.flows.failed == 0
    assert result.drops.by_reason["no_route"] > 0
