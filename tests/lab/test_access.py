"""The access list of a scenario: what it denies is dropped and named, all else arrives."""

import random
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from tests.lab.simulated import simulate_sparely
from traffic.collectives import NEVER

QUICK = ("traffic.bytes=1KB", "transport.rto_ns=50us", "transport.retry_limit=2")


def drawn(rng: random.Random, addresses: dict[str, str]) -> dict[str, Any]:
    """A rule that says something of some hosts."""
    rule: dict[str, Any] = {"allow": rng.random() < 0.5}
    for end in ("src", "dst"):
        host = rng.choice(sorted(addresses))
        prefix = IPv4Network((addresses[host], rng.choice((8, 24, 30, 32))), strict=False)
        if (said := rng.choice((None, host, str(prefix)))) is not None:
            rule[end] = said
    return rule | rng.choice(({}, {}, {"protocol": 17}, {"dst_port": 4791}, {"dst_port": 80}))


def passes(rules: list[dict[str, Any]], addresses: dict[str, str]) -> Callable[[str, str], bool]:
    """Whether a RoCEv2 packet does, by the first rule that matches."""

    def matches(source: str | None, host: str) -> bool:
        return source in (None, host) or (
            "/" in str(source) and IPv4Address(addresses[host]) in IPv4Network(source)
        )

    def judged(src: str, dst: str) -> bool:
        for rule in rules:
            ends = matches(rule.get("src"), src) and matches(rule.get("dst"), dst)
            if ends and rule.get("dst_port", 4791) == 4791:
                return bool(rule["allow"])
        return True

    return judged


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(6))
def test_who_may_speak_to_whom_is_as_the_first_rule_says(seed: int, tmp_path: Path) -> None:
    """What has arrived has, though no answer to it may be let back."""
    rng = random.Random(seed)
    fabric = simulate_sparely("hello", *QUICK, out=tmp_path / "bare").experiment.fabric
    addresses = {host.name: str(fabric.address(host)) for host in fabric.hosts}
    rules = [drawn(rng, addresses) for _ in range(rng.choice((1, 3, 6)))]
    run = simulate_sparely("hello", *QUICK, f"access={rules}", out=tmp_path / "run")
    may = passes(rules, addresses)
    schedule, ends = run.experiment.schedule, run.outcome.timeline.end_ns
    for transfer in schedule:
        src, dst = fabric.hosts[transfer.src].name, fabric.hosts[transfer.dst].name
        assert (ends[transfer.id] != NEVER) == may(src, dst), (src, dst, rules)
    denied = any(not may(a, b) for a in addresses for b in addresses if a != b)
    assert run.result.drops.by_reason.keys() == ({"denied"} if denied else set())
