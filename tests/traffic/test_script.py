"""The language that hosts are told their part in: Python says what C understands, and no more.

Each value of a key is tried on both: the model of `traffic/endpoint.py` takes what `core/script.c`
takes, from the bounds of either to those of the types behind them.
"""

import ast
import ctypes as c
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from pydantic import ValidationError

from lab.engines.mininet import notes
from lab.engines.sim import native
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.classes import CONTROL_PRIORITY
from traffic import endpoint, scapy_endpoint, scapy_host
from traffic.congestion import CONTROLS
from traffic.endpoint import (
    CORE,
    MRC_OPTIONS,
    EndpointConfig,
    EndpointPlan,
    EndpointProcess,
    HostSettings,
    QueuePair,
    Transfer,
    TransferKind,
    TransportKind,
)
from traffic.frames import FlowAddress

SCRIPT, HOST = ((CORE / name).read_text() for name in ("script.c", "host_main.c"))
GBPS = 10**9
# What may be said only of what else is said, and is well then.
BESIDE = {
    "credit_classes": "credit-size=9000 credit-least=2000 credit-cell=64 credit-ask-after=1000",
    "rto_first": "rto=0",
    "delivery": "transport=uet entropy=single",
    "security": "transport=uet",
    "headers": "transport=uet",
    **dict.fromkeys(MRC_OPTIONS, "transport=mrc"),
}
# Rates are a scenario's products: who is told that one makes no sense is told so in C's words.
RATES = {"link_bps", "receive_bps"}


def table(name: str) -> dict[str, str]:
    """The keys of a kind of line, and of which kind their values are."""
    return dict(re.findall(rf'^    {name}\("([\w-]+)", (\w+), ', SCRIPT, re.MULTILINE))


def refusal(*lines: str) -> str | None:
    """What C says of a host's lines; None: it takes them."""
    library = native.library()
    net = library.net_new(1, 1, 1, 0)
    try:
        node = library.net_add_host(net)
        said = library.net_host_lines(net, node, "".join(f"{e}\n" for e in lines).encode(),
                                      c.byref(c.c_uint32()))  # fmt: skip
        return said.decode() if said else None
    finally:
        library.net_free(net)


def is_made(make: Callable[[], object]) -> bool:
    try:
        make()
    except ValidationError:
        return False
    return True


POWERS = {sign + (1 << bit) for bit in (*range(10), 16, 20, 24, 31, 32, 61, 62, 63, 64)
          for sign in (-1, 0, 1)}  # fmt: skip
VALUES = sorted(
    POWERS | {-1, 5, 12, 250, 251, 999, 1000, 1001, 9216, 9217, 9224, 10**10, 10**10 + 1}
)
KINDS = endpoint.Recovery, endpoint.Entropy, endpoint.Delivery, endpoint.Headers, TransportKind
WORDS = ["", "on", *(w for e in KINDS for w in e),
         "pattern", "none", "data", "control", "lossless"]  # fmt: skip


def test_settings_have_the_keys_of_an_endpoint_line() -> None:
    ours = {name.replace("_", "-") for name in EndpointConfig.model_fields} - {"cc", "link-bps"}
    assert ours | {"qps", "transfers", "edges"} == set(table("HEAD"))


@pytest.mark.parametrize(
    "name", [n for n in EndpointConfig.model_fields if n not in {"cc", *RATES}]
)
def test_a_setting_is_one_to_python_if_it_is_one_to_c(name: str) -> None:
    kind = table("HEAD")[name.replace("_", "-")]
    taken = 0
    for value in VALUES if kind in NUMBERS else WORDS:
        ours = is_made(lambda value=value: EndpointConfig(link_bps=GBPS, **{name: value}))
        beside = BESIDE.get(name, "")
        line = f"endpoint link-bps={GBPS} {beside} {name.replace('_', '-')}={value}"
        theirs = refusal(line)
        assert ours == (theirs is None), f"{name}={value}: {theirs}"
        taken += ours
    assert 0 < taken < len(VALUES if kind in NUMBERS else WORDS)


NUMBERS = {"FLAG", "DSCP", "U8", "U16", "U32", "U64", "BITS"}


# --- queue pairs and transfers --------------------------------------------------------------------

FLOW = FlowAddress(
    "02:00:00:00:00:01", "02:00:00:00:00:02", IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"),
    0xC000, 18,
)  # fmt: skip
PAIR: Mapping[str, Any] = {"number": 17, "flow": FLOW}


def host_of(pair: QueuePair, *lines: str, ports: int = 1) -> str | None:
    """What C says of a host with a queue pair."""
    config = EndpointConfig(link_bps=GBPS, ports=ports, transport=pair.transport)
    return refusal(config.line(1, 1, 0), pair.line(), *lines)


def keys_of(line: str) -> set[str]:
    return {word.partition("=")[0] for word in line.split()[1:]}


def test_queue_pairs_and_transfers_have_the_keys_of_their_lines() -> None:
    full = QueuePair(**PAIR, port=1, base_rtt_ns=1, planes=(FLOW,), sdi=1)
    assert keys_of(full.line()) == set(table("QP"))
    sent = Transfer(id=1, kind=TransferKind.SEND, queue_pair=17, size=1, delay_ns=1)
    assert keys_of(sent.line()) == set(table("TRANSFER"))


@pytest.mark.parametrize(
    "name", ["number", "psn", "remote_psn", "priority", "rate_bps", "base_rtt_ns", "port"]
)
def test_a_queue_pair_is_one_to_python_if_it_is_one_to_c(name: str) -> None:
    taken = 0
    good = QueuePair(**PAIR)
    for value in VALUES:
        ours = is_made(lambda value=value: QueuePair(**{**PAIR, name: value}))
        pair = good.model_copy(update={name: value})
        if name == "port" and not value:  # is not said
            continue
        theirs = host_of(pair, ports=8)
        assert ours == (theirs is None), f"{name}={value}: {theirs}"
        taken += ours
    assert 0 < taken < len(VALUES)


@pytest.mark.parametrize("kind", [kind for kind in TransferKind if kind != "collective"])
@pytest.mark.parametrize("name", ["id", "size", "delay_ns"])
def test_a_transfer_is_one_to_python_if_it_is_one_to_c(name: str, kind: TransferKind) -> None:
    pair = QueuePair(**PAIR)
    known: dict[str, Any] = {"id": 1, "kind": kind}
    if kind is not TransferKind.COMPUTE:
        known["queue_pair"] = 17
    good = Transfer(**known)
    for value in VALUES:
        ours = is_made(lambda value=value: Transfer(**{**known, name: value}))
        if name == "size" and kind is TransferKind.COMPUTE:
            continue  # is not said
        theirs = host_of(pair, good.model_copy(update={name: value}).line())
        assert ours == (theirs is None), f"{name}={value}: {theirs}"


def test_every_congestion_control_is_known_to_c_by_its_name() -> None:
    for control in CONTROLS.values():
        for kind in map(TransportKind, control.users):
            pair = QueuePair(**PAIR, cc=control.name, transport=kind)
            assert host_of(pair) is None, control.name
    pair = QueuePair(**PAIR).model_copy(update={"cc": "none"})
    assert host_of(pair) is None
    assert "is no value for cc" in (refusal(f"endpoint link-bps={GBPS} qps=1", "qp cc=no") or "")


# --- the lines themselves -------------------------------------------------------------------------


class Heard(EndpointProcess):
    """What a program would be told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def _say(self, text: str) -> None:
        self.said.append(text)


def spoken() -> set[str]:
    """How lines begin that Python says."""
    lists = (IPv6Address("fd00::1"),)
    kinds = [TransferKind.SEND, TransferKind.RECEIVE, TransferKind.COMPUTE]
    transfers = [
        Transfer(id=at, kind=kind, queue_pair=None if kind is TransferKind.COMPUTE else 17,
                 after=(0,) if kind is TransferKind.COMPUTE else ())
        for at, kind in enumerate(kinds)
    ]  # fmt: skip
    plan = EndpointPlan(
        config=EndpointConfig(link_bps=GBPS),
        queue_pairs=(QueuePair(**PAIR, lists=lists),),
        transfers=tuple(transfers),
    )
    settings = HostSettings(interface="a", notes="/tmp/notes", arrival_times=(3, 0, 0))
    heard = Heard()
    heard.start(1)
    heard.set_link(GBPS)
    heard.set_up(0, is_up=True)
    heard.deny(17, [1])
    written = {line.split()[0] for line in (*settings.lines(), *plan.lines(), *heard.said)}
    in_network = Experiment.of(catalogue.load("in-network-allreduce"))
    config = EndpointConfig(link_bps=GBPS)
    written |= {line.split()[0] for line in in_network.plan_lines(0, config)}
    text = inspect.getsource(EndpointProcess)
    return written | set(re.findall(r'"(ready|stop)\\n"', text))


def test_what_python_says_c_understands_and_no_more() -> None:
    script = set(re.findall(r'strcmp\(verb, "(\w+)"\)', SCRIPT))
    program = set(re.findall(r'strn?cmp\(line, "(\w+)(?: |\\n)"', HOST))
    assert spoken() == script | program | {"stop"}  # any other word ends it


def test_the_scapy_endpoint_understands_what_that_in_c_does() -> None:
    theirs = {
        word.value
        for module in (scapy_endpoint, scapy_host)
        for case in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(case, ast.match_case)
        for word in ast.walk(case.pattern)
        if isinstance(word, ast.Constant)
    }
    assert spoken() - theirs == {
        "list",
        "deny",
        "arrival_times",
        "job",
        "peer",
        "collective",
        "stop",
    }


def test_scenarios_and_the_scapy_endpoint_have_the_defaults_of_that_in_c() -> None:
    core = (CORE / "endpoint.c").read_text()
    said = dict(re.findall(r"^        \.(\w+) = (?:\(ns_t\))?([\d< ]+),", core, re.MULTILINE))
    known = {each.name: each.default for each in fields(scapy_endpoint._Settings)}
    scenario = Scenario(name="x")
    usual = {
        "window": scenario.transport.window,
        "rto": scenario.transport.longest_rto_ns,
        "retry_limit": scenario.transport.retry_limit,
        "entropies": scenario.transport.entropies,
        "mtu": scenario.link.mtu,
        "last_hop_dscp": scenario.trim.last_hop_dscp,
        "control_priority": CONTROL_PRIORITY,
    }
    assert known | usual == usual | known  # where both have one
    shared = {name: value for name, value in (known | usual).items() if name in said}
    assert shared.keys() > usual.keys()
    for name, value in shared.items():
        base, _, shift = said[name].partition(" << ")
        assert value == int(base) << int(shift or 0), name
    keys = {name.replace("_", "-") for name in known} | set(scapy_endpoint._ONLY)
    keys |= {name for name in scapy_endpoint._WITHOUT_EFFECT if not name.endswith("-")}
    assert keys <= set(table("HEAD")) | {"link-bps"}


def printed(text: str) -> Iterator[str]:
    """How lines begin that a file of C prints."""
    yield from re.findall(r'\bf?printf\((?:[\w>-]+, )?"([a-z-]+)[ \\]', text)


def matched(*readers: Callable[..., object]) -> set[str]:
    """The words that readers of Python look for at the beginning of lines."""
    return {
        node.value.decode() if isinstance(node.value, bytes) else node.value.strip()
        for reader in readers
        for node in ast.walk(ast.parse(inspect.cleandoc("\n" + inspect.getsource(reader))))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str | bytes)
        and node.value.strip()
    }


def test_what_c_prints_python_reads() -> None:
    said = {*printed(SCRIPT), *printed(HOST)}
    of_notes = {"epoch", "began", "ended"}
    assert of_notes <= said
    assert said - of_notes <= matched(endpoint.read_report, EndpointProcess)
    assert of_notes <= {
        node.value.decode()
        for node in ast.walk(ast.parse(inspect.getsource(notes)))
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes)
    }
    cases = {
        case.pattern.patterns[0].value.value  # type: ignore[attr-defined]
        for case in ast.walk(ast.parse(inspect.getsource(endpoint.read_report)))
        if isinstance(case, ast.match_case)
    }
    assert cases <= said
