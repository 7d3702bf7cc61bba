"""Random worlds: settings, traffic both ways, faults, marks, drops and pauses drawn by a seed.

Whatever comes together, every byte arrives once and right and no queue pair errs: the time-outs
are long for these links and the retry limit is high, so nobody has a reason to give up.
"""

import random
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS, A, B, Outcome, ends, receives, run, sends, unfinished
from traffic.congestion import CONTROLS
from traffic.endpoint import (
    EndpointConfig,
    EndpointPlan,
    Recovery,
    Transfer,
)


def one_of(rng: random.Random, *values: float) -> float:
    return rng.choice(values)


def draw_config(rng: random.Random, ip: int) -> EndpointConfig:
    window = rng.choice((1, 2, 7, 33, 64, 512))
    gbps = rng.choice((1, 10, 100, 400))
    return EndpointConfig(
        link_bps=gbps * GBPS,
        follow_rate=window % 2,
        by_number=int(window in (2, 33, 512)),
        mtu=rng.choice((256, 1024, 4096, 9000)),
        recovery=rng.choice(list(Recovery)),
        window=window,
        rto=2_000_000 + 400_000_000 // gbps,  # twenty queue pairs' windows take their time
        retry_limit=100,
        ack_every=rng.choice((1, 4, 16, 100)),
        reorder=rng.choice((0, 3_000, None)),
        cc={
            "dcqcn_profile": rng.choice(("paper", "conweave", "hpcc-ns3", "mlx5")),
            "dcqcn_cnp_interval": rng.choice((1_000, 50_000)),
        },
        ip=ip,
    )


def draw_world(star: Path, seed: int) -> tuple[Outcome, dict[str, int]]:
    """A run, and the bytes that each host is to receive."""
    rng = random.Random(seed)
    ip = 6 if seed % 2 else 4
    config = draw_config(rng, ip)
    restarts = config.recovery is Recovery.GO_BACK_0
    most = 8 * (config.mtu or 0) if restarts else 60_000
    cc = rng.choice([name for name, cc in CONTROLS.items() if "roce" in cc.users])
    transfers: dict[str, list[Transfer]] = {A: [], B: []}
    total = {A: 0, B: 0}
    pairs = []
    for index in range(rng.choice((1, 3, 20))):
        pair = ends(
            *(A, B, 100 + 2 * index),
            ip=ip,
            cc=cc,
            priority=rng.choice((0, 3)),
            rate_bps=rng.choice((0, 0, GBPS)),
            **dict.fromkeys(("psn", "remote_psn"), rng.choice((0, 0xFFFFF0))),
        )
        pairs.append(pair)
        for way in range(2):
            sizes = [rng.randrange(most) for _ in range(rng.choice((1, 10, 60)))]
            first_id = 1000 * (2 * index + way)
            source, sink = ((A, B), (B, A))[way]
            transfers[source] += sends(pair[way], sizes, first_id)
            transfers[sink] += receives(pair[1 - way], sizes, first_id)
            total[sink] += sum(sizes)
    pauses = [
        f"pause {rng.choice((A, B))} at={at} priority={rng.choice((0, 3, 6))} "
        f"quanta={rng.choice((0, 10, 500, 65535))}"
        for at in sorted(rng.sample(range(200_000), rng.choice((0, 0, 5))))
    ]
    outcome = run(
        star,
        {
            host: EndpointPlan(
                config=config,
                queue_pairs=tuple(pair[side] for pair in pairs),
                transfers=tuple(transfers[host]),
            )
            for side, host in enumerate((A, B))
        },
        extra=pauses,
        seed=seed,
        rate=config.link_bps,
        corrupt=one_of(rng, 0, 0.02),
        duplicate=one_of(rng, 0, 0.02),
        # Go-back-0 starts a message again for every packet that is overtaken.
        reorder=0 if restarts else one_of(rng, 0, 0.05),
        loss=one_of(rng, 0, 0.001, 0.03),
        shake=one_of(rng, 1_000, 20_000),
        kmin=one_of(rng, 0, 10_000),
        kmax=one_of(rng, 0, 50_000),
        pmax=0.2,
        limit=one_of(rng, 1e12, 100_000),
        timeout=200e9,
    )
    return outcome, total


def assert_right(star: Path, seed: int) -> None:
    outcome, total = draw_world(star, seed)
    for host in (A, B):
        report = outcome.hosts[host]
        assert not report.qp_errors, f"seed {seed}: {report.qp_errors}"
        assert not unfinished(report), f"seed {seed}: {host} has {len(unfinished(report))} open"
        assert report.counters["rx_data_bytes"] == total[host], f"seed {seed}"


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(25))
def test_a_random_world_comes_right(strict_star: Path, seed: int) -> None:
    assert_right(strict_star, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_worlds_come_right(strict_star: Path, seed: int) -> None:
    assert_right(strict_star, seed)
