"""What a run found out: its figures, as `result.json` holds them.

Times are in fabric nanoseconds; what does not apply is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from lab.results.cluster import ClusterResult
from lab.results.inference import InferenceResult
from lab.results.part import Part
from lab.results.percentiles import Percentiles
from lab.results.skipped import Skipped
from lab.results.stalls import Stall
from lab.scenario.model import Scenario

SCHEMA = "closlab.result/1"
RESULT = "result.json"  # what it is kept in
REPORT = "report.html"  # what `views/report` shows it in
CAUSES = "causes.json"  # what was found out when somebody asked why: `causes.py`
RECEIVER = "receive_buffer_full"  # of a host that is slower than its link
CUT = "link_cut"  # frames that were under way in a link when it was cut
CORRUPTED = "corrupted"  # on a bad cable: who received them saw a wrong FCS
HALTED = "host_halted"  # what came to a host that stood still


class Step(Part):
    """One step of a job."""

    start_ns: int
    end_ns: int | None = None
    compute_ns: int  # averaged over the ranks
    comm_ns: int


class CollectiveResult(Part):
    """A collective; of several the one that took longest."""

    op: str
    algorithm: str
    bytes: int
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None


class Flows(Part):
    """All messages together."""

    count: int
    completed: int
    failed: int
    bytes: int  # of those that completed
    fct_ns: Percentiles | None = None
    slowdown: Percentiles | None = None  # how much longer than alone in an empty fabric


class Drops(Part):
    """Packets lost in the fabric, and why."""

    total: int
    by_reason: dict[str, int]
    by_switch: dict[str, int]
    price: str | None = None  # what lossless classes lost by the scenario's choice, in words


class Ecn(Part):
    """Marks."""

    marked_packets: int


class PauseOfClass(Part):
    """What paused one class of one direction of a link."""

    xoff_frames: int
    paused_ns: int


class Pause(Part):
    """What paused one direction of a link."""

    xoff_frames: int
    paused_ns: int  # of its classes together
    by_class: dict[int, PauseOfClass] | None = None  # where several classes are lossless

    @property
    def longest_ns(self) -> int:
        """How long the class stood still that did so longest: of a run it is at most all."""
        return max(
            (each.paused_ns for each in (self.by_class or {}).values()), default=self.paused_ns
        )


class Pfc(Part):
    """Pause frames that switches sent, and what these and those of hosts did."""

    xoff_frames: int
    xon_frames: int
    stray_xoff_frames: int = 0  # of those, for a priority that may lose: there should be none
    paused_ns: int
    by_link: dict[str, Pause]
    storms: dict[str, int] = {}  # how often the watchdog let go a queue, by where it leads


class Credits(Part):
    """What went by credits."""

    grants: int  # words of credits sent by switches
    questions: int  # words of how much was spent, by switches and hosts: none where nothing is lost
    waits: int  # times at which a class had something to send and no credits
    waited_ns: int  # and for how long, all together
    by_link: dict[str, int]  # of that, by the direction of a link
    strange: int  # words that nobody can have said, at switches and hosts
    uncovered: int  # packets that came without credit


class Replayed(Part):
    """What one end of a link that tries again did."""

    replayed_frames: int
    timeouts: int


class Llr(Part):
    """What links between switches, or all of them, sent again."""

    spoilt_frames: int  # that came with a wrong FCS
    replayed_frames: int
    answers: int  # sent, those included
    gaps: int  # that named something missing
    timeouts: int
    unfit_frames: int  # that came again, or out of turn
    strange_frames: int  # that make no sense on such a link
    full: int  # times at which a port stood still, because no more could be kept
    by_link: dict[str, Replayed]


class Trim(Part):
    """Packets cut to their headers; all of these arrived, or found no room further on."""

    cut_packets: int
    cut_bytes: int  # that were cut off
    by_class: dict[int, int]  # by the class they had
    by_link: dict[str, int]  # by the direction of the link they were to be sent into
    arrived_packets: int  # at hosts, which answer UET's by a NACK
    known_packets: int  # but those whose whole had come before
    lost_packets: int


class Roce(Part):
    """What the endpoints counted."""

    data_packets: int
    data_bytes: int
    retransmitted_packets: int
    naks: int
    cnps: int
    timeouts: int
    out_of_order_packets: int
    qp_errors: int
    fast_cnps: int | None = None  # of switches, if these tell senders themselves
    lost_acks: int | None = None  # in a class that may lose what its data's class may not


class InNetwork(Part):
    """Collectives that switches carried out, by packets of hosts and switches."""

    without_result: int  # hosts' parts in collectives that came to nothing
    parts: int  # sent by hosts,
    parts_again: int  # of these, because their results were not heard of
    results: int  # taken in by hosts,
    results_twice: int  # and had before
    wrong_results: int  # that are not what the parts add up to
    refused_parts: int  # that came back from switches that know nothing of their job
    added_by_switches: int  # parts, each switch's of its children
    added_by_hosts: int  # parts that came to a job's first host instead


class Security(Part):
    """What it cost to encrypt, and what was not taken: by why, that is in drops."""

    domains: int
    rekeyed: int  # times at which all of them took their next key
    header_bytes: int  # that a packet has more than without
    sent_bytes: int  # of these, by all hosts
    refused_packets: int


class LinkUse(Part):
    """One direction of a link: what the far end's switch received, or a host was sent."""

    name: str
    packets: int
    bytes: int
    utilisation: float
    max_queue_bytes: int | None = None  # at the port that feeds it
    energy_j: float | None = None  # of that port, for all that passed it either way


class Energy(Part):
    """Joules by published figures, of which scenario.energy names the devices."""

    total_j: float
    idle_w: float  # what all takes when nothing is sent
    optics_j: float  # in links' both ends,
    switches_j: float  # in switches without these, what passes them included,
    adapters_j: float
    moved_j: float  # for bits and packets alone: the rest is what idle ports take, too
    per_bit_j: float | None = None  # of payload that arrived
    jobs_j: dict[str, float] | None = None  # until it ended, its share by payload

    @property
    def idle_share(self) -> float:
        """Which share of it would have been taken with nothing to send."""
        return 1 - self.moved_j / self.total_j if self.total_j else 0.0


class HopTelemetry(Part):
    """What one switch said of the packets that carried telemetry."""

    count: int
    latency_ns: Percentiles | None = None
    queue_bytes: Percentiles | None = None


class Telemetry(Part):
    """What telemetry reports told, of all hops together and of each switch."""

    reports: int
    mtu_exceeded: int | None = None  # of these, packets without room for every hop's words
    hop_latency_ns: Percentiles | None = None
    queue_bytes: Percentiles | None = None
    by_switch: dict[str, HopTelemetry]


class Amount(Part):
    """Frames and their bytes."""

    frames: int
    bytes: int


class ClassBooks(Part):
    """What became of one class: ``received + made`` is all the rest, as was checked."""

    received: Amount
    made: Amount | None = None  # by switches: pause frames, reports
    changed_bytes: int | None = None  # by headers that switches added or took away
    left: Amount
    dropped: dict[str, Amount] = {}
    held: Amount | None = None  # when the run ended


class Conservation(Part):
    """Where every frame went, by class: in all switches together, and in all links."""

    switches: dict[str, ClassBooks]
    links: dict[str, ClassBooks] | None = None  # of an engine that sees into them


class Rerouting(Part):
    """What became of routes after a fault, in the machine's time: that is what daemons go by."""

    at_ns: int
    what: str
    # From when it had begun: what switches are told to lose they lose once they are told.
    first_s: float | None = None  # until the first switch was told other routes
    last_s: float | None = None  # and until the last of them was, before the next fault
    switches: int = 0
    entries: int = 0  # of their tables


class Control(Part):
    """How switches found their ways by themselves."""

    kind: str
    routed_s: float  # of the machine's time, until all of them knew all ways
    routes: int
    faults: tuple[Rerouting, ...] = ()

    def sentences(self) -> Iterator[str]:
        """The same, in sentences."""
        yield (
            f"{self.kind.upper()} had found all {self.routes:,} routes after "
            f"{self.routed_s:.2f} s of this machine's time"
        )
        for fault in self.faults:
            if fault.last_s is None:
                yield f"{fault.what}: no route changed"
            else:
                which = f"{fault.switches} switch{'es' if fault.switches > 1 else ''}"
                yield f"{fault.what}: {which} went another way, the last after {fault.last_s:.2f} s"


class Fidelity(Part):
    """Whether the run can be believed."""

    late_p99_ns: int
    ok: bool
    note: str | None = None


class Machines(Part):
    """Where a run was that was on several machines, and what that adds to its times."""

    switches: dict[str, tuple[str, ...]]  # by machine
    cables: tuple[str, ...]  # that lead from one to another
    clock_error_ns: float  # at most, between moments on two of them
    way_ns: float  # the longest, a part of these cables' delay
    longer_ns: dict[str, int]  # cables that were longer than they should be, and by how much


class Hand(Part):
    """What somebody did who watched."""

    at_ns: int
    what: str


class Cost(Part):
    """What something costs, by the same run without it; without a time, that does not end."""

    of: str  # in words
    whom: str = ""  # a part of what goes on; nothing: the whole run
    took_ns: int | None = None
    without_ns: int | None = None


class JobResult(Part):
    """One job of several; without times if it did not come to its end."""

    jct_ns: int | None = None
    gpu_utilisation: float | None = None


class Result(Part):
    """A run's result."""

    schema_: str = SCHEMA
    scenario: Scenario
    engine: str
    switch: str
    seed: int
    dilation: float
    clock: Literal["fabric"] = "fabric"  # whose time it is
    provenance: dict[str, str]
    ended: str | None = None  # why the run is not whole
    skipped: Skipped | None = None  # where it need not be exact
    duration_ns: int
    jct_ns: int | None = None
    steps: tuple[Step, ...] | None = None
    gpu_utilisation: float | None = None
    collective: CollectiveResult | None = None
    cluster: ClusterResult | None = None  # of jobs that arrive and wait
    jobs: dict[str, JobResult] | None = None  # of each, if there are several and none waits
    inference: InferenceResult | None = None  # of requests that are served
    flows: Flows
    stalls: tuple[Stall, ...] | None = None  # why messages did not arrive, if some did not
    cost: Cost | None = None  # in the simulator, where the scenario asks what something costs
    parts: dict[str, Flows] | None = None  # the same of each part of the traffic, if it has several
    drops: Drops
    ecn: Ecn
    pfc: Pfc
    credits: Credits | None = None  # where classes go by them
    llr: Llr | None = None  # where links try again
    trim: Trim | None = None  # where switches were to trim
    roce: Roce
    inc: InNetwork | None = None
    security: Security | None = None  # where hosts encrypt
    telemetry: Telemetry | None = None
    links: tuple[LinkUse, ...]
    energy: Energy | None = None
    machines: Machines | None = None  # none: it was on one
    by_hand: tuple[Hand, ...] | None = None  # what somebody did to it who watched
    control: Control | None = None  # none: a controller tells switches their routes
    conservation: Conservation | None = None  # none: of switches that keep no books
    fidelity: Fidelity

    def figure(self, key: str) -> float | None:
        """What stands at a place such as ``flows.fct_ns.p50``; None where it does not apply."""
        found: Any = self
        for name in key.split("."):
            found = None if found is None else getattr(found, name)
        return None if found is None else cast("float", found)

    def content(self) -> dict[str, Any]:
        """What ``result.json`` holds."""
        content = self.model_dump(mode="json", exclude_none=True)
        return {"schema": content.pop("schema_"), **content}
