"""At the end of a run nothing is missing: the check agrees with captures, and fires on any mistake.

Its own reading is held against a recount of what crossed each link, from capture files; then single
figures of a run's books are falsified, one after the other; then the switch itself is: a frame is
lost without a word, a counter counts twice, and the run has to fail and say where.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.errors import RunError
from lab.results import conservation
from lab.results.outcome import Line, Outcome, Traffic
from params.data import Data
from tests.lab.simulated import Run, simulate
from tests.waiting import LONG_S

ROOT = Path(__file__).resolve().parents[2]
# Pauses, losses on purpose, telemetry that adds to packets, CNPs, a link that dies under traffic.
EVENTFUL = (
    "traffic={kind: incast, senders: 7, bytes: 150KB}",
    "transport={cc: dcqcn, recovery: selective, rto_ns: 50us}",
    "ecn={kmin: 10KB, kmax: 40KB}",
    "int.share=0.2",
    "loss={rate: 0.05, links: [leaf2-spine1]}",
    "faults=[{at_ns: 20us, link: leaf3-spine1, action: down, for_ns: 30us}]",
    "reroute_ns=10us",
)


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate("incast", *EVENTFUL, "measures.pcap=[all]", out=tmp_path_factory.mktemp("run"))


def class_of(frame: bytes) -> int:
    """A class by the standards: written anew, from the fields' definitions."""
    kind = int.from_bytes(frame[12:14], "big")
    body = frame[14:]
    if kind == 0x8100:
        kind, body = int.from_bytes(frame[16:18], "big"), frame[18:]
    match kind:
        case 0x0800:
            return body[1] // 32
        case 0x8808:
            return 8
        case _:
            return 9


def captured(path: Path) -> dict[int, Traffic]:
    """Frames and their true lengths in a capture, by class."""
    data = path.read_bytes()
    frames: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    at = 24
    while at < len(data):
        _, _, stored, length = struct.unpack_from("<IIII", data, at)
        class_ = class_of(data[at + 16 : at + 16 + stored])
        frames[class_] += 1
        sizes[class_] += length
        at += 16 + stored
    return {class_: Traffic(frames[class_], sizes[class_]) for class_ in frames}


def test_books_of_links_are_what_captures_show(eventful: Run) -> None:
    seen: set[Any] = set()
    for name, lines in eventful.outcome.link_books.items():
        delivered = conservation.Books(lines).by_key("left")
        shown = captured(eventful.out / "pcaps" / f"{name.replace('>', '-')}.pcap")
        assert {key.class_: amount for key, amount in delivered.items()} == shown, name
        seen |= shown.keys()
    assert {3, 6, 8} <= seen  # data, CNPs, pauses: or this shows little


def test_what_is_kept_adds_up_and_tells_what_happened(eventful: Run) -> None:
    kept = eventful.result.conservation
    assert kept is not None and kept.links is not None
    for accounts in (kept.switches, kept.links):
        for account in accounts.values():
            for unit in ("frames", "bytes"):

                def of(each: object, unit: str = unit) -> int:
                    return getattr(each, unit) if each else 0

                changed = account.changed_bytes or 0 if unit == "bytes" else 0
                assert of(account.received) + of(account.made) + changed == (
                    of(account.left) + sum(map(of, account.dropped.values())) + of(account.held)
                )
    hosts = eventful.outcome.endpoints.values()
    assert sum(each.left.frames for each in kept.links.values()) == (
        sum(each.received.frames for each in kept.switches.values())
        + sum(counted["rx_packets"] for counted in hosts)
    )
    dropped = eventful.result.drops.by_reason
    assert dropped["injected_loss"] and (dropped.get("port_down") or dropped.get("link_cut"))


SPOILT = tuple(
    f"{{at_ns: {at}us, action: {action}, link: {link}, rate: {rate}, for_ns: 300us}}"
    for at, action, link, rate in (
        (5, "corrupt", "leaf2-spine1", 0.05),
        (5, "duplicate", "leaf3-spine2", 0.1),
        (10, "reorder", "leaf1-spine1", 0.2),
        (0, "corrupt", "h1-leaf1", 0.03),
        (0, "reorder", "h5-leaf3", 0.2),
    )
)


def test_what_bad_cables_do_is_accounted_for(tmp_path: Path) -> None:
    """What captures show beyond a cable differs from what was sent by just what the cable did."""
    changes = ("traffic={kind: permutation, bytes: 300KB}",
               "transport={recovery: selective, rto_ns: 100us}", "measures.pcap=[all]",
               f"faults=[{', '.join(SPOILT)}]")  # fmt: skip
    run = simulate("incast", *changes, out=tmp_path)
    done: Counter[str] = Counter()
    for switch, kept in run.outcome.books.items():
        books = conservation.Books(kept.lines)
        for port in run.experiment.fabric.ports(switch):
            link = run.experiment.fabric.link_at(switch, port)
            peer = link.b if link.a == switch else link.a
            pcap = run.out / "pcaps" / f"{link.direction(peer).replace('>', '-')}.pcap"
            came = sum(n.packets for n in captured(pcap).values())
            of = {book: books.of(f"cable_in_{book}").get(port, Traffic()).packets
                  for book in ("lost", "added", "held")}  # fmt: skip
            seen = sum(n.packets for n in books.at("port_in", port).values())
            assert came == seen + of["lost"] + of["held"] - of["added"], (switch, port)
            done.update(of)
    assert done["lost"] and done["added"], "nothing was spoilt"
    assert run.result.drops.by_reason["corrupted"] >= done["lost"]
    assert run.result.roce.out_of_order_packets
    assert run.result.flows.failed == 0


def falsified(outcome: Outcome, rng: random.Random) -> Iterator[tuple[str, Outcome]]:
    """The same with one figure of it wrong, for every figure of all books."""

    def wrong(lines: tuple[Line, ...], at: int) -> Iterator[tuple[Line, ...]]:
        line = lines[at]
        for changed in (
            line._replace(packets=line.packets + rng.choice((-1, 1, line.packets or 2))),
            line._replace(bytes=line.bytes + rng.choice((-1, 1, line.bytes or 2))),
        ):
            yield (*lines[:at], changed, *lines[at + 1 :])
        yield (*lines[:at], *lines[at + 1 :])

    for node, kept in outcome.books.items():
        for at, line in enumerate(kept.lines):
            for lines in wrong(kept.lines, at):
                books = {**outcome.books, node: dataclasses.replace(kept, lines=lines)}
                yield f"{node} {line}", dataclasses.replace(outcome, books=books)
        for name in ("received", "copies", "sent", "held"):
            other = dataclasses.replace(kept, **{name: getattr(kept, name) + 1})
            books = {**outcome.books, node: other}
            yield f"{node} {name}", dataclasses.replace(outcome, books=books)
    for name, link in outcome.link_books.items():
        for at, line in enumerate(link):
            for lines in wrong(link, at):
                of_links = {**outcome.link_books, name: lines}
                yield f"{name} {line}", dataclasses.replace(outcome, link_books=of_links)
    for node, counted in outcome.endpoints.items():
        for name in ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes"):
            endpoints = {**outcome.endpoints, node: {**counted, name: counted[name] - 1}}
            yield f"{node} {name}", dataclasses.replace(outcome, endpoints=endpoints)
    for node, counts in outcome.switches.items():
        for number, port in counts.ports.items():
            for name in ("received", "sent"):
                more = getattr(port, name) + Traffic(1, 64)
                ports = {**counts.ports, number: dataclasses.replace(port, **{name: more})}
                switches = {**outcome.switches, node: dataclasses.replace(counts, ports=ports)}
                yield f"{node} {number} {name}", dataclasses.replace(outcome, switches=switches)


@pytest.mark.parametrize("seed", [1])
def test_any_wrong_figure_fires(eventful: Run, seed: int) -> None:
    rng = random.Random(seed)
    fabric = eventful.experiment.fabric
    assert conservation.violations(fabric, eventful.outcome) == []
    cases = list(falsified(eventful.outcome, rng))
    for what, outcome in rng.sample(cases, 300):
        assert conservation.violations(fabric, outcome), f"nobody notices: {what} (seed {seed})"


def test_a_violation_is_told_with_its_place(eventful: Run) -> None:
    leaf = eventful.experiment.fabric.node("leaf1")
    kept = eventful.outcome.books[leaf]
    lines = tuple(
        line._replace(packets=line.packets - 5) if line[:3] == ("in", 3, False) else line
        for line in kept.lines
    )
    books = {**eventful.outcome.books, leaf: dataclasses.replace(kept, lines=lines)}
    with pytest.raises(RunError, match=r"leaf1, class 3: .* in, but .* left, .* dropped, .* held"):
        conservation.check(
            eventful.experiment.fabric, dataclasses.replace(eventful.outcome, books=books)
        )


class Mutant(Data):
    """A mistake made on purpose: a text of ours in a file, and another in its place."""

    file: str
    text: str
    instead: str
    says: str  # part of what the run then says


MUTANTS = {
    "a frame is lost without a word": Mutant(
        "switch/rt/sw.c",
        "    sw->program->ingress(&run);\n",
        "    if (sw->received % 97 == 5) {\n        pkt_release(sw->pool, p);\n"
        "        return;\n    }\n"
        "    sw->program->ingress(&run);\n",
        "class 3",
    ),
    "frames received are counted twice": Mutant(
        "switch/rt/sw.c", "    sw->received++;\n", "    sw->received += 2;\n", "counted as received"
    ),
    "drops are counted twice": Mutant(
        "switch/rt/sw.h",
        "    sw->drops[why]++;\n",
        "    sw->drops[why] += 2;\n",
        "counted as dropped",
    ),
    "a queue forgets its last packet": Mutant(
        "switch/rt/sw.c",
        "    sw->held++;\n    mark(sw->backlog, number);\n",
        "    mark(sw->backlog, number);\n    sw->held++;\n"
        "    if (sw->received % 89 == 3)\n        sw->held--;\n",
        "held",
    ),
    "a frame is sent twice": Mutant(
        "switch/rt/sw.c",
        "    bytes_t size = p->len + p->absent;\n    unsigned class",
        "    if (sw->sent % 71 == 7 && !is_cpu && p->absent)\n"
        "        port->ops->send_cut(port->driver, p->data, p->len, p->absent, when);\n"
        "    bytes_t size = p->len + p->absent;\n    unsigned class",
        "sent into it",
    ),
    "a cable loses a frame": Mutant(
        "lab/engines/sim/net.c",
        "    part->delivered++;\n",
        "    if (++part->delivered % 101 == 0) {\n        frame_release(part, frame);\n"
        "        return;\n    }\n",
        "left",
    ),
    "an adapter counts twice": Mutant(
        "traffic/core/endpoint.c",
        "    ep->counters.rx_packets++;\n",
        "    ep->counters.rx_packets += 2;\n",
        "came from it",
    ),
    "a program does not count some drops": Mutant(
        "p4src/account.p4",
        "        dropped.count((bit<32>)(bit<8>)meta.drop_reason);\n        if",
        "        if (meta.drop_reason != drop_reason_t.INJECTED_LOSS)\n"
        "            dropped.count((bit<32>)(bit<8>)meta.drop_reason);\n        if",
        "its program counted",
    ),
}  # fmt: skip
USUAL = "a program does not count some drops"  # the quickest to build
FOLDERS = ("switch/rt", "lab/engines/sim", "traffic/core", "p4src")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == USUAL else pytest.mark.slow) for n in MUTANTS]
)
def test_a_mistake_fails_the_run(name: str, tmp_path: Path) -> None:
    """The mistake is built into a copy of our sources, and a whole run is made with it."""
    mutant = MUTANTS[name]
    where = {folder: ROOT / folder for folder in FOLDERS}
    for folder in filter(mutant.file.startswith, FOLDERS):
        where[folder] = tmp_path / folder
        shutil.copytree(ROOT / folder, where[folder])
    file = tmp_path / mutant.file
    text = file.read_text()
    assert text.count(mutant.text) == 1, "the mutant is out of date"
    file.write_text(text.replace(mutant.text, mutant.instead))
    program = f"""
import sys
from pathlib import Path
from switch import build
build.RUNTIME = Path({str(where["switch/rt"])!r})
from traffic import endpoint
core = Path({str(where["traffic/core"])!r})
endpoint.SOURCES = tuple(core / path.relative_to(endpoint.CORE) for path in endpoint.SOURCES)
from lab.engines.sim import native
native.FOLDER = Path({str(where["lab/engines/sim"])!r})
from lab.cli import main
main()
"""
    words = ["run", "incast", "--engine", "sim", "--out", str(tmp_path / "out")]
    words += ["--p4", str(where["p4src"])] if mutant.file.startswith("p4src") else []
    changes = [word for change in EVENTFUL for word in ("--set", change)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words, *changes],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=LONG_S,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "frames are missing, or counted twice" in done.stderr
    assert mutant.says in done.stderr
    assert not (tmp_path / "out" / "result.json").exists()
