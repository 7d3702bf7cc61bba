"""CONGA over unequal cables: a way that is slow far off is used less, however ways are weighted.

What a way is used without knowing better is told by the rates of the leaf's own cables, and by the
same run under ecmp.
"""

import random
from pathlib import Path

import pytest

from tests.lab.simulated import simulate_sparely


def uplink_shares(policy: str, changes: list[str], spines: int, out: Path) -> list[float]:
    """What part of its bytes leaf1 sends to each spine."""
    run = simulate_sparely("degraded-path", f"lb.policy={policy}", *changes, out=out)
    sent = run.links("leaf1>spine")
    return [sent[f"leaf1>spine{spine}"] / sum(sent.values()) for spine in range(1, spines + 1)]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(40))
def test_a_remotely_slow_way_is_used_less_in_weighted_groups(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    spines = draw.choice((2, 3, 4, 6))
    hosts = 2 * spines
    near, far = draw.randrange(1, spines + 1), draw.randrange(1, spines + 1)
    slow = {f"leaf1-spine{near}": draw.choice((0.25, 0.5, 0.75))}
    slow[f"leaf2-spine{far}"] = draw.choice((0.1, 0.2, 0.3))
    size = draw.choice((100, 150))
    flows = ", ".join(
        f"{{src: h{n}, dst: h{hosts + n}, bytes: {size + 7 * n}KB}}" for n in range(1, hosts + 1)
    )
    back = ", ".join(f"{{src: h{hosts + n}, dst: h{n}, bytes: 20KB}}" for n in (1, 2))
    changes = [
        f"topology={{leaves: {draw.choice((2, 3))}, spines: {spines}, hosts_per_leaf: {hosts}}}",
        f"link.slow={{{', '.join(f'{name}: {share}' for name, share in slow.items())}}}",
        "traffic={kind: flows, messages: 12, rest_ns: 26us, flows: [" + f"{flows}, {back}]}}",
        f"seed={seed + 1}",
        "measures={series: false, flows: false}",
    ]
    rates = [slow.get(f"leaf1-spine{spine}", 1.0) for spine in range(1, spines + 1)]
    due = rates[far - 1] / sum(rates)
    conga, ecmp = (
        uplink_shares(policy, changes, spines, tmp_path / policy)[far - 1]
        for policy in ("conga", "ecmp")
    )
    assert conga < 0.8 * due, f"{slow}: due {due:.3f}, ecmp {ecmp:.3f}, conga {conga:.3f}"
