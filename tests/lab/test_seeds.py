"""What seeds of chaos and of drawn fabrics found: each as small as it became, and mended since."""

from __future__ import annotations

from pathlib import Path

from tests.lab.simulated import simulate_sparely

TWO = "topology={kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2}"


def test_credit_comes_to_a_sender_whose_link_is_slower_than_its_peers(tmp_path: Path) -> None:
    """It begins with less than the receiver would, and has to be granted the difference too."""
    run = simulate_sparely(
        "hello",
        TWO,
        "link={mtu: 256, rate_gbps: 10, slow: {h2-leaf1: 0.6}}",
        "traffic={kind: incast, bytes: 23519}",
        "transport={kind: uet, cc: rccc, rto_ns: 200us}",
        out=tmp_path,
    )
    assert run.result.flows.completed == 1


def test_what_waits_for_credits_of_a_link_that_is_cut_lets_go_of_its_own(tmp_path: Path) -> None:
    """Held in a dead port's queue for ever it kept its host's credits, who had other ways to go."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}",
        "traffic={kind: incast, senders: 3, bytes: 1594KB}",
        "link.cbfc=true",
        "lb.policy=dlb",
        "transport={cc: dcqcn, rto_ns: 200us, retry_limit: 250}",
        "reroute_ns=20us",
        "faults=[{at_ns: 77us, action: down, link: leaf2-spine2}, "
        "{at_ns: 28us, action: restart, switch: leaf1}]",
        "limit_ns=60ms",
        "seed=700086",
        out=tmp_path,
    )
    assert run.result.flows.completed == 3
