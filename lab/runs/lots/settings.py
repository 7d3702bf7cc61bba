"""What links, switches and adapters are told, by lot: whatever goes together."""

from __future__ import annotations

from lab.runs.lots.fabrics import GBPS
from lab.runs.lots.lot import Lot, Section
from params.classes import DSCP_PRIORITIES
from params.data import Data
from params.load_balancing import Moves, Policy
from topologies import Fabric, NodeKind
from traffic.congestion import CONTROLS, NONE, Control, Kind, Parameter
from traffic.endpoint import MRC_OPTIONS, Delivery, Entropy, Headers

CLASSES = range(7)
_ROOM = 4296  # bytes that a frame may need besides its payload: the largest cell, and headers
_USUAL = {  # of parameters for which a control finds a value itself
    Kind.TIME: (1000, 10**5),
    Kind.RATE: (10**6, 10**10),
    Kind.SIZE: (1000, 10**7),
    Kind.NUMBER: (1, 10),
}


class Frame(Data):
    """What everything else depends on."""

    fabric: Fabric
    kind: str  # of topology
    gbps: int  # of hosts' links
    mtu: int
    ip: int
    transport: str
    cc: str
    lossless: list[int]
    is_paused: bool  # whether these are paused, or go by credits
    goes_by_credits: bool
    is_tunnelled: bool

    @property
    def has_ports(self) -> bool:
        """Whether adapters have several."""
        return self.fabric.host_ports > 1

    @property
    def links(self) -> list[str]:
        """Those between switches."""
        return [link.name for link in self.fabric.links if link.joins_switches]

    @property
    def ends(self) -> list[str]:
        """Those to hosts."""
        return [link.name for link in self.fabric.links if not link.joins_switches]

    @property
    def leaves(self) -> list[str]:
        """Those that hosts hang at."""
        return [node.name for node in self.fabric.switches if node.kind is NodeKind.LEAF]

    @property
    def lossy(self) -> list[int]:
        """The classes that may lose."""
        return [each for each in CLASSES if not self.is_paused or each not in self.lossless]


def frame(lot: Lot, fabric: Fabric, kind: str) -> Frame:
    """First choices."""
    has_ports = fabric.host_ports > 1
    sprays = (fabric.is_spread or not has_ports) and lot.chance(0.3)
    transport = lot.one(("uet", "mrc")) if sprays else "roce"
    is_tunnelled = fabric.host_ports == 1 and lot.chance(0.06)
    ccs = [
        name
        for name, control in CONTROLS.items()
        if transport in control.users
        and not control.is_brought
        and not (is_tunnelled and (control.hears_telemetry or control.hears_csig))
    ]
    goes_by_credits = not has_ports and lot.chance(0.12)
    return Frame(
        fabric=fabric,
        kind=kind,
        gbps=lot.one(GBPS),
        mtu=lot.one((256, 1024, 4096, 9000, 8 * lot.upto(1125, 32))),
        ip=4 if is_tunnelled else lot.one((4, 6)),
        transport=transport,
        cc=lot.one(ccs),
        lossless=sorted(lot.some(CLASSES, lot.one((1, 1, 2, 3, 7)))),
        is_paused=goes_by_credits or lot.chance(0.96),
        goes_by_credits=goes_by_credits,
        is_tunnelled=is_tunnelled,
    )


def link(lot: Lot, chosen: Frame) -> Section:
    """Cables."""
    delay = lot.wide(10, 50_000), lot.wide(10, 50_000)
    shares = {name: lot.share(0.02) for name in lot.some(chosen.links + chosen.ends, 1)}
    credit = round((4 * (chosen.mtu + 1200) + 3 * 4096) * lot.share(1, 20))
    return {
        "rate_gbps": chosen.gbps, "mtu": chosen.mtu, "ip": chosen.ip, "delay_ns": delay[0],
        **lot.maybe(0.8, fabric_rate_gbps=lot.one(GBPS)),
        **lot.maybe(0.8, fabric_delay_ns=delay[1]),
        **lot.maybe(0.25, slow=shares),
        **lot.maybe(0.12, llr=lot.one(("go-back-n", "selective"))),
        **({"cbfc": True, **lot.maybe(0.4, credit=credit)} if chosen.goes_by_credits else {}),
    }  # fmt: skip


def classes(lot: Lot, chosen: Frame) -> Section:
    """Which class a packet has, told otherwise than usual."""
    values = lot.some(range(64), len(CLASSES))
    mapping = dict.fromkeys(DSCP_PRIORITIES, 0) | dict(zip(values, CLASSES, strict=True))
    trust = "dscp" if chosen.is_tunnelled else lot.one(("dscp", "dscp", "pcp"))
    by_tag = dict(zip(lot.some(range(8), 7), CLASSES, strict=True))
    return {
        **lot.maybe(0.2, dscp={value: mapping[value] for value in sorted(mapping)}),
        **lot.maybe(0.5, trust=trust),
        **(lot.maybe(0.3, pcp=by_tag) if trust == "pcp" else {}),
    }


def trim(lot: Lot, chosen: Frame, taken: Section) -> Section:
    """Headers of what would be dropped, in classes that may lose."""
    if len(chosen.lossy) < 2 or chosen.is_tunnelled or not lot.chance(0.2):
        return {}
    dscp = taken.get("dscp", DSCP_PRIORITIES)
    free = [value for value in range(64) if value not in dscp and value not in DSCP_PRIORITIES]
    into, *cut = lot.some(chosen.lossy, lot.upto(len(chosen.lossy), 2))
    dscps = lot.some(free, 2)
    return {
        "enabled": True, "classes": sorted(cut), "priority": into,
        "dscp": dscps[0], "last_hop_dscp": dscps[1],
        **lot.maybe(0.5, size=lot.upto(128, 64)),
        **lot.maybe(0.5, reserved=lot.wide(1000, 40_000)),
        **lot.maybe(0.6, threshold=lot.wide(_ROOM + chosen.mtu, 40 * (_ROOM + chosen.mtu))),
    }  # fmt: skip


def pfc(lot: Lot, chosen: Frame) -> Section:
    """Pauses."""
    mtu, watchdog = chosen.mtu, lot.one((0, 200_000_000, 50_000_000, 1_000_000, 100_000))
    times = {
        **lot.maybe(0.2, watchdog_restore_ns=lot.wide(10_000, 10**8)),
        **lot.maybe(0.2, watchdog_poll_ns=lot.wide(10_000, 10**7)),
        **lot.maybe(0.5, watchdog_action=lot.one(("drop", "forward", "alert"))),
    }
    if "watchdog_poll_ns" in times:
        longest = min(watchdog, times.get("watchdog_restore_ns", watchdog))
        times["watchdog_poll_ns"] = min(times["watchdog_poll_ns"], longest)
    return {
        "priorities": chosen.lossless, "response_ns": lot.wide(1, 20_000),
        **({} if chosen.is_paused or chosen.goes_by_credits else {"enabled": False}),
        **lot.maybe(0.5, asymmetric=lot.chance(0.8)),
        **lot.maybe(0.7, watchdog_ns=watchdog), **(times if watchdog else {}),
        **lot.maybe(0.4, xon_gap=lot.wide(1, 20 * mtu)),
        **lot.maybe(0.3, xon=lot.wide(1, 20 * mtu)),
        **lot.maybe(0.5, xon_follows=lot.chance(0.7)),
    }  # fmt: skip


def _marks(lot: Lot) -> Section:
    kmin = lot.wide(1, 400_000)
    return {"kmin": kmin, "kmax": kmin + lot.one((0, 1, 100_000)), "pmax": lot.share()}


def ecn(lot: Lot, chosen: Frame) -> Section:
    """Marking."""
    own = {
        priority: _marks(lot)
        | (lot.maybe(0.3, drop=lot.chance(0.7)) if priority in chosen.lossy else {})
        for priority in lot.some(CLASSES, lot.upto(3))
    }
    return {"enabled": lot.chance(0.6), **_marks(lot), **lot.maybe(0.2, classes=own)}


def schedule(lot: Lot, chosen: Frame) -> Section:
    """Which class goes first, and how fast."""
    kind = lot.one(("strict", "strict", "dwrr", "ets"))
    weighted, rest = lot.some(range(6), lot.upto(3)), range(6)
    weights = {priority: lot.upto(20) for priority in sorted(weighted)}
    first = [each for each in rest if each not in weighted]
    shape = {each: lot.share(0.05, 1.2) * chosen.gbps for each in lot.some(CLASSES, 2)}
    return {
        **({} if kind == "strict" else {"kind": kind, "weights": weights}),
        **(lot.maybe(0.4, strict=lot.some(first, lot.upto(2))) if kind == "ets" else {}),
        **lot.maybe(0.1, shape=shape),
        **lot.maybe(0.1, port_gbps=lot.share(0.1) * chosen.gbps),
        **lot.maybe(0.15, burst=lot.wide(1, 100_000)),
    }


def balancing(lot: Lot, chosen: Frame) -> Section:
    """Which way a packet takes."""
    is_vain = chosen.kind == "dual-tor" or chosen.is_tunnelled
    known = sorted(Policy, key=lambda policy: policy.moves is Moves.PACKETS)
    fitting = [each.value for each in known if not (is_vain and each is Policy.CONGA)]
    return {"policy": lot.one(fitting), **lot.maybe(0.2, flowlet_gap_ns=lot.wide(100, 10**6))}


def _parameters(lot: Lot, control: Control) -> Section:
    """Some of a control's, each within its bounds and not far from what it usually is."""
    found: Section = {}
    for each in control.parameters:
        found |= lot.maybe(0.2, **{each.key: _value(lot, each)})
    return found


def _value(lot: Lot, parameter: Parameter) -> int | float | bool | str:
    kind, usual = parameter.kind, parameter.usual
    if kind is Kind.WORD:
        return lot.one(parameter.words)
    if kind is Kind.FLAG:
        return lot.chance(0.5)
    if kind in (Kind.SHARE, Kind.REAL):
        return lot.share(max(0.001, parameter.least), parameter.most)
    low, high = _USUAL[kind] if not usual else (int(usual) // 4 + 1, 4 * int(usual))
    number = lot.wide(max(low, round(parameter.least)), min(high, round(parameter.most)))
    return number / 10**6 if kind is Kind.RATE else number


def transport(lot: Lot, chosen: Frame, policy: str, *, loses: bool) -> Section:
    """Adapters; where things are lost on purpose, such as send them again in time."""
    found: Section = {"cc": chosen.cc}
    if chosen.transport == "roce":
        if Policy(policy).moves is Moves.PACKETS:
            found["recovery"] = "selective"
        else:
            found["recovery"] = lot.one(("go-back-n", "go-back-n", "go-back-0", "selective"))
        found |= lot.maybe(0.6, acks=lot.one(("data", "control")))
    else:
        least = chosen.fabric.host_ports
        entropies = [2**power for power in range(9) if 2**power >= least]
        kinds = "oblivious", "bitmap", "reps", "single", "mrc"
        found |= {"kind": chosen.transport, **lot.maybe(0.8, entropy=lot.one(kinds))}
        found |= lot.maybe(0.5, entropies=lot.one(entropies)) if least <= 128 else {}
    if CONTROLS[chosen.cc].parameters:
        found |= lot.maybe(0.7, **{chosen.cc: _parameters(lot, CONTROLS[chosen.cc])})
    first = lot.wide(50_000, 10**6)
    found |= lot.maybe(0.8, window=lot.one((1, 7, 64, 512, 4096)))
    found |= lot.maybe(0.2, queue_pairs=lot.upto(3))
    found |= lot.maybe(0.2, reorder=lot.wide(1, 10**6))
    if loses:
        found |= {"rto_ns": lot.one((200_000, 10**6, 10**7)), "retry_limit": 250}
    else:
        found |= lot.maybe(0.2, timeout=lot.one((0, 14, 18, 20)))
        found |= lot.maybe(0.1, first_rto_ns=first) if found.get("timeout") != 0 else {}
        found |= lot.maybe(0.2, retry_limit=lot.upto(20, 2))
    can_take_less = not (chosen.goes_by_credits or chosen.has_ports)
    if can_take_less and lot.chance(0.2):
        gbps = chosen.gbps * lot.share(0.1, 1.2)
        some = {host.name: gbps for host in lot.some(chosen.fabric.hosts, 1)}
        found |= {"receive_gbps": gbps if lot.chance(0.3) else some}
        found |= {"receive_buffer": lot.wide(1, 300_000)}
    return found


def delivery(lot: Lot, transport: Section, *, is_ordered: bool) -> Section:
    """UET by one of its modes and semantic headers; in order only where that may be."""
    mode = lot.one([each for each in Delivery if is_ordered or each is not Delivery.ROD])
    found = transport | {"delivery": mode.value} | lot.maybe(0.5, headers=lot.one([*Headers]).value)
    has_pdc, control = mode in (Delivery.RUD, Delivery.ROD), CONTROLS[transport["cc"]]
    if mode is Delivery.ROD or (not has_pdc and found.get("entropy") == Entropy.MRC):
        found.pop("entropy", None)
    if mode is Delivery.UUD or (not has_pdc and control.hears_credit):
        found.pop(control.name, None)
        found["cc"] = NONE
    return found


def mrc(lot: Lot, chosen: Frame) -> Section:
    """What MRC's adapters tell and ask each other."""
    return {key: True for key in MRC_OPTIONS if chosen.transport == "mrc" and lot.chance(0.5)}


def telemetry(lot: Lot, chosen: Frame) -> Section:
    """Packets that tell of their way."""
    by_hosts = CONTROLS[chosen.cc].hears_telemetry  # all packets have it, then
    if by_hosts or chosen.is_tunnelled or not lot.chance(0.2):
        return {}
    return {"share": lot.one((0.01, 0.1, 1)), **lot.maybe(0.3, mtu=lot.upto(9200, 64))}


def signals(lot: Lot, chosen: Frame) -> dict[str, Section]:
    """How senders hear of congestion, where there is a choice: additions to some sections."""
    control = CONTROLS[chosen.cc]
    if control.hears_csig:
        unaware = [host.name for host in lot.some(chosen.fabric.hosts, 1)]
        tag = {"tag": lot.one(("compact", "wide"))}
        return {"csig": {**tag, **lot.maybe(0.3, unaware=unaware)}}
    if control.hears_notices and not chosen.is_tunnelled and lot.chance(0.3):
        return {"ecn": {"fast_cnp": True, **lot.maybe(0.7, fast_cnp_ns=lot.wide(100, 1_000_000))}}
    return {}


def segments(lot: Lot, chosen: Frame, transport: Section, tenants: list[str]) -> Section:
    """Lists of where to go, by leaves or by adapters."""
    leaves = chosen.leaves
    spines = [node.name for node in chosen.fabric.switches if node.kind is NodeKind.SPINE]
    has_ports = chosen.fabric.host_ports > 1
    is_plain = chosen.kind in ("leaf-spine", "rail") and not has_ports and not chosen.is_tunnelled
    if not is_plain or len(leaves) < 2 or not lot.chance(0.6 if tenants else 0.15):
        return {}
    policies = []
    for _ in range(lot.upto(3)):
        at, to = lot.some(leaves, 2)
        host = lot.one(chosen.fabric.hosts_of(chosen.fabric.node(to))).name
        via = [[spine] for spine in lot.some(spines, lot.upto(len(spines)))]
        whole = chosen.kind == "leaf-spine"
        target = to if lot.chance(0.6) else host
        whose = lot.maybe(0.6, tenant=lot.one(tenants)) if tenants else {}
        ways = lot.maybe(0.6, via=via) if whole else {}
        policies.append({"at": at, "to": target, **ways, **whose})
    usual = "mrc" if chosen.transport == "mrc" else "reps"
    keeps = chosen.transport != "roce" and transport.get("entropy", usual) == "mrc"
    return {
        "enabled": True,
        **lot.maybe(0.8, policies=policies),
        **(lot.maybe(0.6, hosts=True) if keeps and chosen.ip == 6 else {}),
    }


def access(lot: Lot, chosen: Frame) -> Section:
    """Rules that all of the traffic passes, and others that none of it meets."""
    if chosen.is_tunnelled or not lot.chance(0.08):
        return {}
    one, other = lot.some(chosen.fabric.hosts, 2)
    rules: list[Section] = [
        {"allow": False, "protocol": 17, "dst_port": 9},
        {"allow": True, "src": one.name, "dst": other.name, "src_port": lot.upto(65535)},
        {"allow": False, "protocol": 6},
    ]
    return {"access": [*lot.some(rules, lot.upto(3)), {"allow": True}]}


def loss(lot: Lot, chosen: Frame) -> Section:
    """Cables that lose."""
    some = lot.some(chosen.links + chosen.ends, 1)
    return {"rate": lot.one((0.001, 0.01)), **lot.maybe(0.5, links=some)}


def memory(lot: Lot, chosen: Frame) -> Section:
    """A switch's buffer, but for how much there is; what may be lost finds room for a frame."""
    mtu = chosen.mtu
    static, lossy = lot.wide(1, 100 * mtu), lot.wide(_ROOM + mtu, 100 * (mtu + _ROOM))
    fixed = {**lot.maybe(0.2, static=static), **lot.maybe(0.1, lossy_static=lossy)}
    if fixed.get("static", lossy) < _ROOM + mtu:
        fixed["lossy_static"] = lossy
    return {
        "alpha": 2.0 ** lot.upto(7, -8),
        **lot.maybe(0.3, lossy_alpha=2.0 ** lot.upto(7, -8)),
        **fixed,
        **lot.maybe(0.3, reserved=lot.wide(1, 3 * mtu)),
        **lot.maybe(0.2, lossy_reserved=lot.wide(1, 3 * mtu)),
        **lot.maybe(0.3, cell=lot.one((64, 80, 208, 254, 4096))),
        **lot.maybe(0.1, follow_rate=lot.chance(0.7)),
    }
