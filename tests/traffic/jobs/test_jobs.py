"""Jobs take the time their compute and communication take, where they are placed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import depth
from tests.traffic.collectives.single import bound_ns
from traffic.collectives import (
    AlphaBeta,
    PlacementError,
    RankError,
    Schedule,
    Site,
    SpecError,
    collective,
    prove,
)
from traffic.jobs import (
    Placer,
    SimpleJob,
    TrainingJob,
    load_model,
    make_workload,
    model_names,
    read_traffic,
)
from traffic.measures import JobMeasure, Measures

MS = 1_000_000
RACKS = ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))


def simple(**keys: Any) -> SimpleJob:
    settings = {"compute_ns": MS, "collective": {"op": "all-reduce", "bytes": "8MB"}, **keys}
    return SimpleJob.read(settings)


def run(schedule: Schedule, **fabric: Any) -> JobMeasure:
    prove(schedule)
    timeline = AlphaBeta(1000, 100.0, **fabric).run(schedule)
    (measured,) = Measures(schedule, timeline, 1000, 100.0).jobs
    return measured


ALL_REDUCE_NS = bound_ns(collective("all-reduce", 8, 8_000_000), alpha_ns=1000, rate_gbps=100)
BARRIER_NS = bound_ns(collective("barrier", 8), alpha_ns=1000, rate_gbps=100)


def test_a_step_is_compute_then_communication() -> None:
    measured = run(simple(steps=3).schedule(8))
    step_ns = MS + ALL_REDUCE_NS + BARRIER_NS
    assert measured.jct_ns == pytest.approx(3 * step_ns, rel=1e-4)
    assert [step.compute_ns for step in measured.steps] == [MS, MS, MS]
    assert measured.gpu_utilisation == pytest.approx(MS / step_ns, rel=1e-4)
    assert measured.steps[0].comm_ns == pytest.approx(ALL_REDUCE_NS + BARRIER_NS, rel=1e-3)


def test_overlap_hides_all_but_the_last_bucket() -> None:
    """Each of 4 buckets takes half as long as a quarter of the compute."""
    quarter = collective("all-reduce", 8, 2_000_000)
    bucket_ns = bound_ns(quarter, alpha_ns=1000, rate_gbps=100)
    compute = round(8 * bucket_ns)
    apart = run(simple(compute_ns=compute, buckets=4, barrier=False).schedule(8))
    over = run(simple(compute_ns=compute, buckets=4, barrier=False, overlap=True).schedule(8))
    assert apart.jct_ns == pytest.approx(compute + 4 * bucket_ns, rel=0.01)
    assert over.jct_ns == pytest.approx(compute + bucket_ns, rel=0.01)
    assert over.steps[0].comm_ns == pytest.approx(4 * bucket_ns, rel=0.01)


def test_one_slow_rank_slows_all() -> None:
    measured = run(simple(stragglers=[{"rank": 5, "slowdown": 3}]).schedule(8))
    step_ns = 3 * MS + ALL_REDUCE_NS + BARRIER_NS
    assert measured.jct_ns == pytest.approx(step_ns, rel=0.02)
    # Seven ranks computed for a third of the time, one for all of it.
    assert measured.gpu_utilisation == pytest.approx((7 * MS + 3 * MS) / 8 / step_ns, rel=0.02)


def test_one_slow_link_slows_the_ring() -> None:
    job = simple(slow_links=[{"rank": 2, "rate_share": 0.25}], barrier=False)
    work = make_workload(job, Site(8))
    assert work.port_shares == {2: 0.25}
    measured = run(work.schedule, port_share=work.port_shares)
    fast = run(work.schedule)
    assert fast.jct_ns is not None
    assert measured.jct_ns is not None
    assert (measured.jct_ns - MS) / (fast.jct_ns - MS) == pytest.approx(4, rel=0.05)


def test_policies() -> None:
    def place(policy: Any, ranks: int, **options: Any) -> list[int]:
        return Placer(Site(12, racks=RACKS)).place(ranks, policy, **options)

    assert place("packed", 5) == [0, 1, 2, 3, 4]
    assert place("spread", 5) == [0, 4, 8, 1, 5]
    assert place("rail-aligned", 6) == [0, 4, 8, 1, 5, 9]
    assert place("rail-aligned", 4, node=1) == [0, 4, 8, 1]
    shuffled = place("random", 12)
    assert sorted(shuffled) == list(range(12))
    assert shuffled == place("random", 12) != sorted(shuffled)


@settings(max_examples=depth.of(50))
@given(
    policies=st.lists(st.sampled_from(["packed", "spread", "random"]), max_size=5),
    size=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_jobs_never_share_a_host(policies: list[Any], size: int, seed: int) -> None:
    placer = Placer(Site(12, racks=RACKS, seed=seed))
    taken: list[int] = []
    for policy in policies:
        if placer.free >= size:
            taken += placer.place(size, policy)
    assert len(set(taken)) == len(taken) == 12 - placer.free


def test_rail_aligned_rings_stay_on_their_rail() -> None:
    site = Site(12, racks=RACKS)
    hosts = Placer(site).place(12, "rail-aligned")
    rack_of = {host: rack for rack, members in enumerate(RACKS) for host in members}
    for local in range(3):
        assert len({rack_of[hosts[rank]] for rank in range(local, 12, 3)}) == 1


@pytest.mark.parametrize(
    ("ranks", "policy", "node", "complaint"),
    [
        (13, "packed", None, "13 ranks do not fit on 12 free hosts"),
        (8, "rail-aligned", None, "nodes of 3 ranks cannot align 8 ranks"),
        (10, "rail-aligned", 2, "use a node size that divides both"),
    ],
)
def test_placements_that_cannot_be(ranks: int, policy: Any, node: Any, complaint: str) -> None:
    with pytest.raises(PlacementError, match=complaint):
        Placer(Site(12, racks=RACKS)).place(ranks, policy, node=node)


def test_racks_that_are_no_partition() -> None:
    with pytest.raises(RankError, match="rank 3 is in no group"):
        Placer(Site(4, racks=((0, 1), (2,))))


def test_several_jobs_and_background_at_once() -> None:
    spec = read_traffic(
        {
            "kind": "mix",
            "parts": [
                {
                    "kind": "job", "name": name, "ranks": 4, "compute_ns": "1ms",
                    "collective": {"op": "all-reduce", "bytes": "1MB"}, "placement": "spread",
                }
                for name in ("red", "blue")
            ]
            + [{"kind": "north-south", "load": 0.2, "duration_ns": "2ms", "gateways": [11]}],
        }
    )  # fmt: skip
    work = make_workload(spec, Site(12, racks=RACKS))
    prove(work.schedule)
    assert work.hosts == {"red": (0, 4, 8, 1), "blue": (5, 9, 2, 6)}
    timeline = AlphaBeta().run(work.schedule)
    measures = Measures(work.schedule, timeline, 1000, 100.0)
    assert [job.job for job in measures.jobs] == ["red", "blue"]
    assert all(job.jct_ns is not None for job in measures.jobs)
    assert {activity.priority for activity in work.schedule.activities} == {0, 3}


GPT = {
    "kind": "training",
    "name": "gpt",
    "model": "gpt3-175b",
    "parallelism": {"tensor": 8, "pipeline": 4, "data": 4},
    "node": {"gpus": 8},
    "batch": {"sequences": 32},
    "scale": 0.001,
}


def training(**keys: Any) -> TrainingJob:
    return TrainingJob.read({**GPT, **keys})


def test_models_that_ship() -> None:
    assert model_names() == ["gpt3-13b", "gpt3-175b", "llama-70b", "mixtral-8x7b"]
    for name in model_names():
        model = load_model(name)
        assert model.name == name
        # A block has 4 h^2 weights of attention; the rest is its feed-forward layer.
        assert model.parameters > model.layers * 4 * model.hidden**2
    gpt = load_model("gpt3-175b")
    assert gpt.parameters == pytest.approx(12 * gpt.layers * gpt.hidden**2, rel=0.01)
    mixtral = load_model("mixtral-8x7b")
    assert mixtral.active_parameters == pytest.approx(12.9e9, rel=0.01)


def test_training_computes_what_the_model_costs() -> None:
    """Shared by all ranks at half of 312 Tflop/s, as Narayanan et al. count for GPT-3.

    Theirs is 96 B s l h^2 (1 + s/6h + V/16lh), with the layers computed again on the way back;
    without that it is 72 B s l h^2 (1 + s/6h + V/12lh).
    """
    job = training(steps=2)
    measured = run(job.schedule(128))
    batch, sequence, layers, hidden = 32, 2048, 96, 12288
    vocabulary = (175e9 - 12 * layers * hidden**2) / hidden
    more = 1 + sequence / (6 * hidden) + vocabulary / (12 * layers * hidden)
    operations = 72 * batch * sequence * layers * hidden**2 * more
    share_ns = operations / 128 / (156 * 1000) * job.scale
    for step in measured.steps:
        assert step.compute_ns == pytest.approx(share_ns, rel=1e-3)


@pytest.mark.parametrize("sequence", [512, 2048, 8192, 131072])
def test_attention_grows_with_the_square_of_the_sequence(sequence: int) -> None:
    """As many multiplications as two products of matrices have: s x h by h x s, s x s by s x h."""
    layers, hidden = 4, 1024
    model = {
        **{"name": "own", "parameters": 10**8, "layers": layers, "hidden": hidden},
        **{"heads": 8, "sequence": sequence},
    }
    split = {"tensor": 1, "pipeline": 1, "data": 1}
    schedule = training(
        model=model, parallelism=split, batch={"sequences": 1}, recompute=True, scale=1
    ).schedule(1)
    took_ns = sum(transfer.delay_ns for transfer in schedule if transfer.src == transfer.dst)
    products = sequence * hidden * sequence + sequence * sequence * hidden
    forward = 2 * (10**8 * sequence + layers * products)
    assert took_ns == pytest.approx(4 * forward / (156 * 1000), rel=1e-3)


def test_the_pipeline_bubble() -> None:
    """Without communication a step takes (m + p - 1) / m of its compute: Narayanan et al."""
    job = training(parallelism={"tensor": 1, "pipeline": 4, "data": 1}, batch={"sequences": 8})
    schedule = job.schedule(4)
    prove(schedule)
    timeline = AlphaBeta(0, 1e9).run(schedule)
    (measured,) = Measures(schedule, timeline, 0, 1e9).jobs
    assert measured.gpu_utilisation == pytest.approx(8 / (8 + 3), rel=0.001)


def test_one_forward_one_backward_bounds_what_is_in_flight() -> None:
    """Stage 0 of 4 runs 4 forwards before its first backward, however many there are."""
    split = {"tensor": 1, "pipeline": 4, "data": 1}
    schedule = training(parallelism=split, batch={"sequences": 16}, buckets=1).schedule(4)
    forward_ns = min(t.delay_ns for t in schedule if t.src == t.dst and t.delay_ns)
    passes = [t for t in schedule if t.src == t.dst and t.src == 0 and t.delay_ns]
    kinds = ["F" if t.delay_ns == forward_ns else "B" for t in passes]
    assert "".join(kinds[:9]) == "FFFFBFBFB"


def bytes_by_name(schedule: Schedule) -> dict[str, int]:
    totals: dict[str, int] = {}
    for transfer in schedule:
        name = schedule.activities[transfer.activity].name.split()[0]
        totals[name] = totals.get(name, 0) + transfer.size
    return totals


def test_training_moves_what_the_model_holds() -> None:
    sent = bytes_by_name(training(scale=1, batch={"sequences": 4}).schedule(128))
    # 32 data groups of 4 replicas: each reduces 175e9 / 32 gradients of 2 bytes.
    assert sent["all-reduce"] == pytest.approx(32 * 2 * 3 * 2 * 175e9 / 32, rel=1e-6)
    # 4 micro-batches cross 3 borders both ways, an eighth on each of 8 ranks.
    assert sent["pipeline"] == 4 * 3 * 2 * 2048 * 12288 * 2


def test_tensor_parallelism_beyond_the_node_is_on_the_fabric() -> None:
    inside = training(node={"gpus": 8}, scale=1, batch={"sequences": 4}).schedule(128)
    across = training(node={"gpus": 1}, scale=1, batch={"sequences": 4}).schedule(128)
    more = bytes_by_name(across)["all-reduce"] - bytes_by_name(inside)["all-reduce"]
    # 16 groups, a micro-batch each: 4 all-reduces of bshe for each of 24 layers, 2 x 7 shares.
    assert more == pytest.approx(16 * 4 * 24 * 14 * 2048 * 12288 * 2, rel=1e-6)


def test_expert_parallelism_exchanges_tokens() -> None:
    job = training(
        model="mixtral-8x7b",
        parallelism={"tensor": 1, "pipeline": 1, "data": 8, "expert": 4},
        node={"gpus": 1},
        batch={"sequences": 8},
        scale=1,
        buckets=8,
    )
    schedule = job.schedule(8)
    prove(schedule)
    sent = bytes_by_name(schedule)
    # 8 ranks, 4 all-to-alls a layer of both active experts' tokens, three quarters to others.
    assert sent["all-to-all"] == pytest.approx(8 * 4 * 32 * 2 * 4096 * 4096 * 2 * 3 / 4, rel=1e-6)
    dense = 2 * 7 * 1.6e9 * 2
    experts = 4 * 2 * 1 * 45.1e9 / 4 * 2
    assert sent["all-reduce"] == pytest.approx(dense + experts, rel=1e-6)


def test_a_sharded_optimizer_moves_the_same_bytes_in_two_parts() -> None:
    whole = bytes_by_name(training().schedule(128))
    parts = bytes_by_name(training(sharded_optimizer=True).schedule(128))
    assert parts["reduce-scatter"] + parts["all-gather"] == pytest.approx(
        whole["all-reduce"], rel=1e-3
    )


def test_a_norm_ends_the_step_of_all_ranks() -> None:
    """Four bytes, and nobody begins a step before everybody has computed the last one."""
    split = {"tensor": 4, "pipeline": 2, "data": 2}
    keys = {"parallelism": split, "steps": 2, "stragglers": [{"rank": 9, "slowdown": 3}]}
    schedule, without = (
        training(**keys, node={"gpus": 1}, clip_gradients=clip).schedule(16)
        for clip in (True, False)
    )
    # Up and down the 15 edges of a tree, half of the float in each of two.
    assert sum(schedule.size) - sum(without.size) == 2 * 2 * 15 * 4
    timeline = AlphaBeta().run(schedule)
    computing = [
        (schedule.activities[each.activity].step, each.id)
        for each in schedule
        if each.delay_ns and schedule.activities[each.activity].kind == "compute"
    ]
    last_ns = max(timeline.end_ns[number] for step, number in computing if step == 0)
    assert min(timeline.start_ns[number] for step, number in computing if step == 1) > last_ns


def test_overlap_makes_training_faster() -> None:
    keys = {"parallelism": {"tensor": 8, "pipeline": 1, "data": 4}, "batch": {"sequences": 4}}
    over, apart = (run(training(overlap=o, **keys).schedule(32)).jct_ns for o in (True, False))
    assert over is not None
    assert apart is not None
    assert over < apart


def test_a_straggler_slows_its_whole_node_and_the_job() -> None:
    slow = training(stragglers=[{"rank": 3, "slowdown": 2}])
    assert slow.slowdowns() == dict.fromkeys(range(8), 2.0)
    usual, late = run(training().schedule(128)).jct_ns, run(slow.schedule(128)).jct_ns
    assert usual is not None
    assert late is not None
    assert late > 1.3 * usual


@settings(max_examples=depth.of(25), deadline=None)
@given(data=st.data())
def test_any_training_job_runs_to_its_end(data: st.DataObject) -> None:
    degree = st.sampled_from([1, 2, 4])
    expert = data.draw(st.sampled_from([1, 2]))
    split = {
        "tensor": data.draw(degree), "pipeline": data.draw(degree),
        "data": data.draw(degree) * expert, "expert": expert,
    }  # fmt: skip
    job = training(
        model="mixtral-8x7b",
        parallelism=split,
        batch={"sequences": split["data"] * data.draw(st.integers(1, 6))},
        node={"gpus": data.draw(st.sampled_from([1, 2, 8]))},
        buckets=data.draw(st.integers(1, 3)),
        slices=data.draw(st.integers(1, 3)),
        overlap=data.draw(st.booleans()),
        recompute=data.draw(st.booleans()),
        sharded_optimizer=data.draw(st.booleans()),
        clip_gradients=data.draw(st.booleans()),
        steps=data.draw(st.integers(1, 2)),
        scale=1e-4,
    )
    ranks = job.groups.world
    schedule = job.schedule(ranks)
    measured = run(schedule)
    assert measured.jct_ns is not None
    assert 0 < (measured.gpu_utilisation or 0) <= 1


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"parallelism": {"pipeline": 5}}, "96 layers do not divide by 5"),
        ({"parallelism": {"tensor": 7}}, "96 heads do not divide by 7"),
        ({"parallelism": {"data": 3}}, "32 sequences do not divide by 3"),
        ({"parallelism": {"data": 2, "expert": 2}}, "gpt3-175b has no experts"),
        ({"parallelism": {"data": 2, "expert": 4}}, "use an expert degree that divides 2"),
        ({"stragglers": [{"rank": 128, "slowdown": 2}]}, "no rank 128 to slow down"),
    ],
)
def test_groups_that_do_not_divide(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RankError, match=complaint):
        job = training(**keys)
        job.schedule(job.groups.world)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "begin with 'kind:'"),
        ({}, "there is no kind None; known: collective"),
        ({"kind": "incst"}, "did you mean 'incast'"),
        ({"kind": "mix", "parts": []}, "a mix of nothing"),
        ({"kind": "mix", "parts": [{"kind": "incast", "byts": 1}]}, "did you mean 'bytes'"),
        ({"kind": "job", "compute_ns": "1 week", "collective": {"op": "x"}}, "write a number of n"),
        ({**GPT, "model": "gtp3-175b"}, "did you mean 'gpt3-175b'"),
        ({**GPT, "model": "/nowhere/x.yaml"}, "cannot be read: No such file"),
        ({**GPT, "parallelism": {"tensr": 2}}, "did you mean 'tensor'"),
        ({**GPT, "gpu": {"tflops": -1}}, "must be more than 0"),
        ({**GPT, "gpu": {"tflops": float("nan")}}, "finite number"),
        ({**GPT, "scale": 0}, "must be more than 0"),
        ({**GPT, "model": {"name": "x"}}, "model.parameters: it must be given"),
    ],
)
def test_yaml_that_describes_nothing(data: Any, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        read_traffic(data)


def test_a_model_of_ones_own(tmp_path: Any) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\nparameters: 1.5B\nlayers: 8\nhidden: 1024\nheads: 8\nsequence: 1024\n"
    )
    assert load_model(str(path)).parameters == 1_500_000_000
    path.write_text("name: mine\nexperts: {count: 2, active: 3, parameters: 1}\n")
    with pytest.raises(SpecError, match="3 active experts of 2"):
        load_model(str(path))
    path.write_text("{")
    with pytest.raises(SpecError, match="is not YAML"):
        load_model(str(path))


def test_two_jobs_of_one_name() -> None:
    part = {"kind": "job", "ranks": 2, "compute_ns": 1, "collective": {"op": "barrier"}}
    spec = read_traffic({"kind": "mix", "parts": [part, part]})
    with pytest.raises(SpecError, match="two jobs are named 'job'"):
        make_workload(spec, Site(8))
