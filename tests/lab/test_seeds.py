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
