"""Experts, inference and storage: who sends how much to whom, and when, by models of the test's."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from traffic.collectives import AlphaBeta, RankError, Schedule, Site, SpecError, TrafficError
from traffic.jobs import ExpertsJob, InferenceJob, make_workload, read_traffic
from traffic.jobs.experts import wanted
from traffic.patterns import StorageSpec

RATE = 100.0
ALPHA_NS = 700


def sent(schedule: Schedule, *names: str) -> Counter[tuple[int, int]]:
    """Bytes by source and destination, of activities of these names."""
    found: Counter[tuple[int, int]] = Counter()
    for transfer in schedule:
        if schedule.activities[transfer.activity].name in names:
            found[transfer.src, transfer.dst] += transfer.size
    return found


# --- experts --------------------------------------------------------------------------------------


def experts(**keys: Any) -> ExpertsJob:
    return ExpertsJob.read({"tokens": 100, "compute_ns": 1000, "token_bytes": 10, **keys})


def dispatched(seed: int, **keys: Any) -> Counter[tuple[int, int]]:
    """Tokens of eight ranks by who sends them to whom, on their way there."""
    keys = {"experts": 32, "active": 4, "tokens": 500, "token_bytes": 1, **keys}
    return sent(experts(**keys).schedule(8, seed), "dispatch")


@pytest.mark.parametrize("seed", range(5))
def test_tokens_that_choose_by_lot_are_as_chance_has_it(seed: int) -> None:
    """Of 32 experts a token takes four, of which a rank has four: hypergeometric."""
    found = dispatched(seed, choices="lot")
    mean, variance = 500 * 4 / 8, 500 * 4 * (4 / 32) * (28 / 32) * (28 / 31)
    assert all(abs(count - mean) < 5 * variance**0.5 for count in found.values())
    spread = sum((count - mean) ** 2 for count in found.values()) / len(found)
    assert 0.5 < spread / variance < 1.7
    assert set(dispatched(seed).values()) == {250}


def test_who_is_wanted_more_is_chosen_more_often() -> None:
    got = [Counter[int](), Counter[int]()]
    for by_rank, choices in zip(got, ("shares", "lot"), strict=True):
        for (_, peer), count in dispatched(3, skew=1.2, choices=choices).items():
            by_rank[peer] += count
    assert got[0].most_common(1)[0][0] == got[1].most_common(1)[0][0]
    assert all(abs(got[1][rank] / got[0][rank] - 1) < 0.25 for rank in got[0])


@pytest.mark.parametrize("choices", ["shares", "lot"])
def test_tokens_within_a_node_cross_no_fabric(choices: str) -> None:
    """And the others go as they would without nodes."""
    all_of_them = dispatched(1, choices=choices)
    across = {pair: n for pair, n in all_of_them.items() if pair[0] // 4 != pair[1] // 4}
    assert dispatched(1, choices=choices, node=4) == across


def test_too_many_lots_are_refused() -> None:
    with pytest.raises(RankError, match="choose by lot among 32 experts"):
        dispatched(1, choices="lot", tokens=10**7)


@pytest.mark.parametrize("seed", range(8))
def test_choices_are_shared_out_by_zipf_and_nobody_serves_a_token_twice(seed: int) -> None:
    chance = Random(seed)
    count = chance.randint(2, 40)
    active, skew = chance.randint(1, count), chance.choice([0, 0.3, 1, 3])
    shares = sorted(wanted(count, active, skew, chance), reverse=True)
    assert sum(shares) == pytest.approx(active)
    assert 0 <= shares[-1] <= shares[0] <= 1
    rest = [share for share in shares if share < 1]
    first = len(shares) - len(rest) + 1
    for place, share in enumerate(rest, first):  # those that are not full keep their proportion
        assert share / rest[0] == pytest.approx((first / place) ** skew)


def test_what_goes_to_experts_comes_back() -> None:
    for seed in range(6):
        made = experts(experts=16, layers=3, skew=1, active=2).schedule(8, seed)
        made.check()
        there, back = sent(made, "dispatch"), sent(made, "combine")
        assert back == Counter({(dst, src): size for (src, dst), size in there.items()})
        to = Counter[int]()
        for (_, dst), size in there.items():
            to[dst] += size
        assert max(to.values()) > 1.5 * min(to.values())
    assert experts(skew=1).schedule(8, 1) != experts(skew=1).schedule(8, 2)


def test_a_layer_ends_when_the_hottest_has_answered() -> None:
    """All tokens want two of four experts as evenly as can be: by hand."""
    made = experts(ranks=4, tokens=1000, token_bytes=100, compute_ns=5000).schedule(4, 1)
    size = 500 * 100  # half of the tokens go to each
    assert set(sent(made, "dispatch").values()) == {size}
    exchange = ALPHA_NS + 3 * size * 8 / RATE
    finish = AlphaBeta(ALPHA_NS, RATE).run(made).finish_ns
    assert finish == pytest.approx(2 * exchange + 5000, rel=0.01)


def test_experts_have_to_divide() -> None:
    for keys in ({"experts": 6}, {"experts": 4, "active": 5}):
        with pytest.raises(RankError, match="of them active, on 4 ranks"):
            experts(ranks=4, **keys).schedule(4, 1)


# --- inference ------------------------------------------------------------------------------------


def inference(**keys: Any) -> InferenceJob:
    usual = {"every_ns": 10_000, "prefill_ns": 100, "kv_bytes": 500, "requests": 40}
    return InferenceJob.read({**usual, **keys})


@pytest.mark.parametrize("seed", range(6))
def test_prompts_are_read_in_turn_and_answers_begin_when_all_has_come(seed: int) -> None:
    """On a fabric without length or limits: queues of prompts, and answers beside each other."""
    chance = Random(seed)
    job = inference(prefill=chance.randint(1, 4), decode=chance.randint(1, 3), decode_ns=50,
                    pieces=chance.randint(1, 5))  # fmt: skip
    made, requests = job.schedule(job.prefill + job.decode, seed, RATE)
    timeline = AlphaBeta(0, 1e9).run(made)
    free = [0.0] * job.prefill
    moved = Counter[tuple[int, int]]()
    for request in requests:
        assert request.arrives_ns >= 0
        begin = max(free[request.prefill], request.arrives_ns)
        assert begin == min(max(at, request.arrives_ns) for at in free)
        free[request.prefill] = begin + request.prompt * 100
        assert timeline.end_ns[request.first_token] == pytest.approx(free[request.prefill], abs=200)
        answered = timeline.end_ns[request.last_token] - timeline.end_ns[request.first_token]
        assert answered == request.answer * 50
        moved[request.prefill, request.decode] += request.prompt * 500
    assert sent(made, "kv cache") == moved
    assert {request.decode for request in requests} == set(
        range(job.prefill, job.prefill + job.decode)
    )


def test_a_cache_moves_while_it_is_computed() -> None:
    """One request: in n pieces, all but the last moves behind what is computed."""
    for pieces in (1, 4):
        job = inference(
            requests=1, prompt_tokens=1000, kv_bytes=12_500, pieces=pieces, prefill_ns=2000
        )
        made, (request,) = job.schedule(2, 3, RATE)
        ends = AlphaBeta(ALPHA_NS, RATE).run(made).end_ns
        computed = request.arrives_ns + request.prompt * 2000
        last = request.prompt * 12_500 * 8 / RATE / pieces
        assert ends[request.first_token] == pytest.approx(computed + last + ALPHA_NS, rel=1e-3)


def test_requests_are_found_in_a_mix() -> None:
    part = {"kind": "inference", "every_ns": 1000, "prefill_ns": 5, "kv_bytes": 9, "requests": 7}
    flows = {"kind": "incast", "bytes": 100}
    alone = make_workload(read_traffic(part), Site(8))
    mixed = make_workload(read_traffic({"kind": "mix", "parts": [flows, part]}), Site(8))
    for one, other in zip(alone.requests, mixed.requests, strict=True):
        assert other.first_token - one.first_token == 7
        before = alone.schedule.transfer(one.first_token)
        assert mixed.schedule.transfer(other.first_token).src == before.src


# --- storage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_every_client_saves_and_loads_all_of_its_share(seed: int) -> None:
    chance = Random(seed)
    hosts = chance.randint(4, 20)
    servers = chance.sample(range(hosts), chance.randint(1, hosts // 2))
    stripes = chance.choice([None, chance.randint(1, len(servers))])
    save, load, times = (
        chance.choice([0, 7, 100_000]),
        chance.randint(1, 99_999),
        chance.randint(1, 3),
    )
    config = {"servers": servers, "save": save, "load": load, "times": times, "at_ns": 500,
            "every_ns": 4000, "stripes": stripes}  # fmt: skip
    made = StorageSpec.read(config).schedule(Site(hosts))
    made.check()
    clients = [host for host in range(hosts) if host not in servers]
    for name, size, at in (("checkpoint", save, 0), ("data loading", load, 1)):
        by_client, by_server = Counter[int](), Counter[int]()
        for ends, count in sent(made, name).items():
            by_client[ends[at]] += count
            by_server[ends[1 - at]] += count
        assert by_client == Counter({host: times * size for host in clients if size})
        if size > 100 and len(clients) * (stripes or len(servers)) % len(servers) == 0:
            assert max(by_server.values()) - min(by_server.values()) <= times * len(clients)
    begins = Counter(t.delay_ns for t in made if not t.waits)
    assert set(begins) == {500 + 4000 * turn for turn in range(times)}
    for transfer in made:
        if made.activities[transfer.activity].name == "data loading":
            (asked,) = transfer.waits
            assert (made.src[asked], made.dst[asked]) == (transfer.dst, transfer.src)


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"servers": ["h1"]}, "storage that nobody uses"),
        ({"servers": ["h1", "h1"], "save": 5}, "servers: a host is named twice"),
        ({"servers": ["h1"], "clients": ["h1"], "save": 5}, "h1 is a server and a client"),
        ({"servers": ["h1"], "stripes": 2, "save": 5}, "stripes is 2, and there are 1 servers"),
        ({"servers": ["h9"], "save": 5}, "there is no h9; they are h1 to h4"),
        ({"servers": [0, 1, 2, 3], "save": 5}, "all hosts are servers"),
    ],
)
def test_what_is_wrong_in_storage_is_named(config: dict[str, Any], wrong: str) -> None:
    with pytest.raises((SpecError, TrafficError), match=wrong):
        StorageSpec.read(config).schedule(Site(4))
