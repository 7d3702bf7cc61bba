"""The words of lossless Ethernet, as a student would search for them, and where the lab has them.

`docs/glossary.md` is written from this file (`python -m lab.scenario.glossary`); reports have it
folded at their end, `closlab explain WORD` tells one.
"""

from __future__ import annotations

import textwrap

from params.data import Data


class Word(Data):
    """A term, what else it is called, what it means, and where to see it."""

    name: str
    also: str
    meaning: str
    see: str = ""


WORDS = (
    Word(
        "adaptive routing",
        "per-packet load balancing",
        "Each packet takes the uplink whose queue is shortest. Best use of the links, at the price "
        "of packets that overtake each other.",
        "closlab run alltoall --engine sim --set lb.policy=adaptive",
    ),
    Word(
        "BFD",
        "bidirectional forwarding detection, RFC 5880",
        "Neighbours tell each other several times a second that they live; three times in vain, "
        "and the way between them counts as dead, whatever its carrier says.",
        "closlab run silent-failure",
    ),
    Word(
        "BGP",
        "border gateway protocol, RFC 4271; in data centres RFC 7938",
        "Switches tell their neighbours which addresses they lead to; of several equally short "
        "ways all are used. Nobody has to know the whole fabric.",
        "closlab run bgp-clos",
    ),
    Word(
        "bus bandwidth",
        "busbw",
        "What a collective moves, counted so that the figure is a link's rate when all goes well, "
        "whatever the algorithm and the number of ranks.",
        "closlab run allreduce-ring --engine sim",
    ),
    Word(
        "carrier",
        "uSID carrier",
        "An IPv6 address whose upper 32 bits are the block and whose others are up to six uSIDs; a "
        "packet that is steered has one as the destination of a header of its own, 40 bytes long.",
        "closlab run usid-steering --engine sim",
    ),
    Word(
        "checkpoint",
        "",
        "A copy of all that a training job has learnt, written to storage now and then: a "
        "burst from every GPU at once.",
        "closlab run checkpoint-burst --engine sim",
    ),
    Word(
        "CNP",
        "congestion notification packet",
        "The receiver's word to a sender that a packet of its flow came marked; DCQCN slows down.",
        "closlab run incast --engine sim --set ecn.enabled=true --set transport.cc=dcqcn",
    ),
    Word(
        "congestion spreading",
        "saturation tree",
        "A full queue pauses the switch before it, whose queues fill in turn, and so on towards "
        "the senders: what began at one port stands across the fabric.",
        "closlab run pfc-storm --engine sim",
    ),
    Word(
        "CSIG",
        "congestion signalling; draft-ravi-ippm-csig",
        "A tag of 4 or 8 bytes in which each hop puts what it has to say in place of what is "
        "there, if that is worse; the receiver tells the sender, who hears of the worst hop alone.",
        "closlab run congestion-signals --engine sim",
    ),
    Word(
        "DCQCN",
        "data centre quantised congestion notification",
        "The rate control of RoCEv2 adapters: cut by a fraction on a notification, recover in "
        "steps when there is none.",
        "closlab explain transport.dcqcn",
    ),
    Word(
        "deadlock",
        "circular buffer dependency",
        "Switches in a ring, each paused by the next and waiting for it: nothing moves again, "
        "until a watchdog lets packets go.",
        "closlab run deadlock --engine sim",
    ),
    Word(
        "dragonfly",
        "",
        "Groups of switches, all of a group cabled to each other, and few cables between "
        "groups: short ways for little cable, and one way at most of them.",
        "closlab run dragonfly --engine sim",
    ),
    Word(
        "drain",
        "",
        "To have a cable or a switch left by all who have another way, before somebody unplugs it: "
        "it carries on what is under way, and nothing is lost.",
        "closlab explain faults.action",
    ),
    Word(
        "dual-ToR",
        "two top-of-rack switches, multihoming",
        "Every host of a rack has a port into each of two switches, so that it goes on when "
        "one dies.",
        "closlab run dual-tor --engine sim",
    ),
    Word(
        "dynamic threshold",
        "alpha",
        "A queue may hold up to alpha times what of the shared buffer is still free: many busy "
        "queues leave each other something.",
        "closlab explain buffer.alpha",
    ),
    Word(
        "ECMP",
        "equal-cost multipath",
        "A flow's path is drawn by a hash of its addresses and ports; large flows may collide on "
        "one link while another rests.",
        "closlab run hash-collision --engine sim",
    ),
    Word(
        "ECN",
        "explicit congestion notification; WRED where packets are dropped instead",
        "Switches mark packets that leave a long queue: none below Kmin, all above Kmax, a "
        "growing share between.",
        "closlab explain ecn",
    ),
    Word(
        "fast CNP",
        "back-to-sender signal; draft-xiao-rtgwg-rocev2-fast-cnp",
        "A congested switch's own word to a sender that it should slow down, instead of a mark "
        "that the receiver would tell it of.",
        "closlab explain ecn.fast_cnp",
    ),
    Word(
        "FCT",
        "flow completion time",
        "From a message's first packet to its last byte at the receiver. Its slowdown is that "
        "time over what it would take alone.",
    ),
    Word(
        "flowlet",
        "",
        "A burst of a flow after a gap longer than the paths differ by: it may take another path "
        "and nothing arrives out of order.",
        "closlab run two-elephants --engine sim --set lb.policy=flowlet",
    ),
    Word(
        "front-end fabric",
        "back-end fabric",
        "GPUs have a fabric to themselves, the back-end, and reach storage and the world "
        "through another, the front-end, so that neither waits for the other.",
        "closlab run two-fabrics --engine sim",
    ),
    Word(
        "go-back-N",
        "",
        "After a loss everything from the lost packet on is sent again; a selective sender "
        "repeats only what is missing.",
        "closlab explain transport.recovery",
    ),
    Word(
        "graceful restart",
        "RFC 4724",
        "What speaks BGP for a switch may die and come back; the switch forwards by what it knew, "
        "and so do its neighbours, until it knows again.",
        "closlab run leaf-restart",
    ),
    Word(
        "head-of-line blocking",
        "HOL blocking",
        "A packet that could go on waits behind one that may not. A paused queue does it to all "
        "flows in it, wherever they lead.",
        "closlab run victim-flow --engine sim",
    ),
    Word(
        "headroom",
        "PFC headroom",
        "Room kept for what still arrives after XOFF was sent: a round trip of the cable, the "
        "frames under way at both ends, and the time the sender takes to obey.",
        "closlab explain pfc.headroom",
    ),
    Word(
        "INC",
        "in-network collective, in-network computing",
        "A collective that switches carry out: each adds up what comes from below, the topmost has "
        "the sum, and it goes down to everybody. Every link carries the data once each way.",
        "closlab run in-network-allreduce --engine sim",
    ),
    Word(
        "incast",
        "many-to-one",
        "Several senders write to one receiver at once; its last link is the bottleneck.",
        "closlab run incast --engine sim",
    ),
    Word(
        "INT",
        "in-band network telemetry",
        "Packets carry what they saw at each switch: queue, latency, link use; the last switch "
        "takes it off and reports it.",
        "closlab run incast --engine sim --set int.share=0.01",
    ),
    Word(
        "IOAM",
        "in situ operations, administration and maintenance; RFC 9197",
        "The IETF's in-band telemetry: a trace in the hop-by-hop options of an IPv6 header around "
        "the packet, with room for every hop from the beginning.",
        "closlab run path-trace --engine sim",
    ),
    Word(
        "JCT",
        "job completion time",
        "From a job's first step to its last rank's end.",
    ),
    Word(
        "KV cache",
        "prefill and decode",
        "What a model keeps of all tokens so far. Where some GPUs read prompts and others "
        "write answers, it moves from the first to the second, and the first token waits for "
        "it.",
        "closlab run kv-cache --engine sim",
    ),
    Word(
        "mixture of experts",
        "MoE",
        "Each token goes to a few of many experts, on whatever GPU they are, and back: two "
        "all-to-alls a layer, uneven where some experts are in demand.",
        "closlab run hot-experts --engine sim",
    ),
    Word(
        "MRC",
        "Multipath Reliable Connection, OCP MRC",
        "RDMA writes in RoCEv2's headers, each packet of which takes a way of its own, says where "
        "its bytes belong, and is answered. Of each way is known whether it is good, to be skipped "
        "once, assumed bad, or denied by a controller.",
        "closlab run path-health --engine sim --set transport.kind=mrc",
    ),
    Word(
        "pause storm",
        "PFC storm",
        "An adapter that sends XOFF without end, for example because it is broken: the queue "
        "towards it, and in time the fabric behind, stands still.",
        "closlab run pfc-storm --engine sim",
    ),
    Word(
        "PFC",
        "priority flow control, IEEE 802.1Qbb",
        "Pause frames for each of eight classes: a switch stops who sends to it before its buffer "
        "is full, so nothing is dropped.",
        "closlab explain pfc",
    ),
    Word(
        "PFC watchdog",
        "",
        "Looks at queues that stay paused and let nothing out; after a time it drops or forwards "
        "what they hold, and ends a storm or a deadlock at the price of losses.",
        "closlab explain pfc.watchdog_ns",
    ),
    Word(
        "plane",
        "multi-plane fabric",
        "One of several networks that share nothing but the hosts, each of which has a port "
        "into every one; what breaks in one is nothing to the others.",
        "closlab run planes --engine sim",
    ),
    Word(
        "rail",
        "rail-optimised fabric",
        "GPU n of every server hangs at leaf n, so ranks of one number talk over one switch.",
        "closlab run rails --engine sim",
    ),
    Word(
        "RoCEv2",
        "RDMA over converged Ethernet",
        "Reads and writes of remote memory over UDP port 4791, as adapters do them without the "
        "processor; made for a network that loses nothing.",
        "closlab frames",
    ),
    Word(
        "scale-up",
        "SUE, SUNH, ESUN",
        "A network of one hop between the accelerators of a rack or a few, which store into each "
        "other's memory a few hundred bytes at a time: short headers, credits, many stores in "
        "a frame.",
        "closlab run scale-up --engine sim",
    ),
    Word(
        "spraying",
        "packet spraying",
        "Each packet of a flow takes the next path or one by lot.",
        "closlab run two-elephants --engine sim --set lb.policy=spray",
    ),
    Word(
        "straggler",
        "",
        "The rank that all others wait for: a step ends when the last one does.",
        "closlab run straggler --engine sim",
    ),
    Word(
        "trimming",
        "packet trimming, cut payload",
        "A switch without room for a packet cuts it to its headers and sends those on, so that the "
        "receiver knows at once what to ask for again, and nobody has to be paused.",
        "closlab run trim-incast --engine sim",
    ),
    Word(
        "UET",
        "Ultra Ethernet Transport, UEC",
        "A transport whose packets each take a way of their own (entropy), say where their bytes "
        "belong, and are acknowledged and sent again one by one (RUD); other modes of delivery "
        "keep an order (ROD), need no memory at the target (RUDI), or promise nothing (UUD).",
        "closlab run delivery-modes --engine sim",
    ),
    Word(
        "uN, uA, uDT",
        "",
        "What a uSID stands for: a switch, which forwards to the next (uN), a port of it (uA), or "
        "the end, where the carrier is taken off (uDT).",
        "closlab run usid-steering --engine sim --set link.ip=6",
    ),
    Word(
        "uSID",
        "micro-segment, SRv6 NEXT-CSID",
        "Sixteen bits of an IPv6 address that name a switch, a port of it or an end. Six of them "
        "in a packet's destination are a way to go by: each place takes its own out.",
        "closlab run usid-steering --engine sim",
    ),
    Word(
        "victim flow",
        "innocent flow",
        "A flow that leads nowhere near the congestion and suffers: it shares a paused queue with "
        "one that does.",
        "closlab run victim-flow --engine sim",
    ),
    Word(
        "VXLAN",
        "overlay, VNI, VTEP",
        "Tenants' frames inside of packets between leaves, told apart by a number of 24 bits "
        "(VNI); a leaf is where such a tunnel begins and ends (VTEP). So tenants can have the same "
        "addresses.",
        "closlab run evpn-tenants --engine sim",
    ),
    Word(
        "XOFF, XON",
        "pause, resume",
        "Stop and go: a pause frame with a time, and one with the time 0. XOFF is sent when an "
        "ingress queue's share of the buffer is used up, which buffer.alpha, or buffer.static, "
        "sets; XON when it has drained by pfc.xon_gap.",
        "closlab explain buffer.alpha",
    ),
)


def found(term: str) -> Word | None:
    """The word of a name, however it is written, or of one of its other names."""
    wanted = _plain(term)
    for word in WORDS:
        names = (word.name, *word.name.split(", "), *word.also.replace(";", ",").split(","))
        if wanted in map(_plain, names):
            return word
    return None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def entry_text(word: Word) -> str:
    """One word for the terminal."""
    head = f"{word.name} ({word.also})" if word.also else word.name
    said = textwrap.fill(word.meaning, 98, initial_indent="  ", subsequent_indent="  ")
    return f"{head}\n{said}" + (f"\n  See it:  {word.see}" if word.see else "")


def markdown() -> str:
    """All of them as a page."""
    lines = ["# The words of lossless Ethernet", ""]
    lines += ["`closlab explain WORD` tells one of them at the terminal.", ""]
    for word in WORDS:
        also = f" ({word.also})" if word.also else ""
        see = f" See it: `{word.see}`." if word.see else ""
        lines += [f"**{word.name}**{also}: {word.meaning}{see}", ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
