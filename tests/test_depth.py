"""On a slow processor sweeps are shorter, and on any other they are whole."""

from itertools import pairwise

import pytest

from tests import depth


@pytest.mark.parametrize(
    ("slower", "counts"),
    [
        ("1.0", {1: 1, 2: 2, 40: 40, 1000: 1000}),
        ("3.9", {2: 2, 40: 40}),  # as noisy as a machine may be
        ("4.0", {1: 1, 3: 3, 40: 10}),
        ("30.0", {1: 1, 2: 2, 3: 3, 40: 3, 1000: 33}),
    ],
)
def test_there_are_so_many_of_so_many(
    slower: str, counts: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOSLAB_TESTS_FEWER", slower)
    assert {count: depth.of(count) for count in counts} == counts
    line = depth.header()
    assert line is None if float(slower) < depth.FROM else f"{float(slower):.0f} times" in str(line)


def test_of_each_sweep_the_first_seeds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else a test is run for makes sweeps of their own; who has no seed stays."""
    monkeypatch.setenv("CLOSLAB_TESTS_FEWER", "10")
    tests = [
        depth.Case(name, {"seed": seed, "policy": policy})
        for name in ("a", "b")
        for policy in ("ecmp", "spray")
        for seed in range(40)
    ]
    tests += [depth.Case("c", {"policy": number}) for number in range(40)] + [depth.Case("d", {})]
    kept = [test for test, keep in zip(tests, depth.chosen(tests), strict=True) if keep]
    assert [test for test in kept if test.function in "cd"] == tests[160:]
    assert {(name, params["policy"]) for name, params, *_ in kept if name in "ab"} == {
        (name, policy) for name in "ab" for policy in ("ecmp", "spray")
    }
    assert [p["seed"] for n, p, *_ in kept if n == "a" and p["policy"] == "spray"] == [0, 1, 2, 3]
    monkeypatch.setenv("CLOSLAB_TESTS_FEWER", "1")
    assert all(depth.chosen(tests))


@pytest.mark.parametrize("count", [1, 2, 3, 14, 40, 439, 530])
@pytest.mark.parametrize("slower", ["4", "12.3", "30", "1000"])
def test_of_what_asks_the_reference_some_from_everywhere_are_kept(
    slower: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOSLAB_TESTS_FEWER", slower)
    tests = [depth.Case("a", {"path": n}, asks_reference=True) for n in range(count)]
    kept = [n for n, keep in enumerate(depth.chosen(tests)) if keep]
    assert len(kept) == depth.of(count)
    assert kept[0] == 0
    steps = {after - before for before, after in pairwise([*kept, count])}
    assert max(steps) - min(steps) <= 1


def test_by_day_there_are_so_many_of_each_sweep() -> None:
    """Seeds from the first on, for all else that a test is run for; other cases from everywhere."""
    tests = [depth.Case("a", {"seed": n, "x": x}, by_day=2) for x in "uv" for n in range(5)]
    tests += [depth.Case("b", {"path": n}, by_day=3) for n in range(9)]
    tests += [depth.Case("c", {"path": n}, by_day=3) for n in range(2)]
    few = depth.chosen(tests, lambda case, size: min(case.by_day or size, size))
    kept = [
        (test.function, *test.params.values())
        for test, keep in zip(tests, few, strict=True)
        if keep
    ]
    assert kept == [
        *(("a", seed, x) for x in "uv" for seed in (0, 1)),
        *(("b", path) for path in (0, 3, 6)),
        *(("c", path) for path in (0, 1)),
    ]
