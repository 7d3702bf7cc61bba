"""On paper: what fits a page stands on it, and pages end full where they can."""

import random
from itertools import pairwise

import pytest

from views.report.paper import PORTRAIT, order


def _pages(heights: list[float], placed: list[int], room: list[float]) -> list[list[list[int]]]:
    """What a browser makes of an order: columns filled one after the other, then the next page."""
    pages: list[list[list[int]]] = [[[], []]]
    at, free = 0, room[0]
    for each in placed:
        if heights[each] > free:
            at, free = at + 1, room[min(len(pages) - 1, 1)]
            if at == 2 or heights[each] > free:
                pages.append([[], []])
                at, free = 0, room[1]
        pages[-1][at].append(each)
        free -= heights[each]
    return pages


@pytest.mark.parametrize("seed", range(40))
def test_pages_are_as_full_as_any_order_of_the_same_makes_the_first(seed: int) -> None:
    rng = random.Random(seed)
    heights = [rng.uniform(90, 560) for _ in range(rng.randrange(1, 8))]
    above = rng.uniform(200, 420)
    room = [PORTRAIT.height - above, PORTRAIT.height]
    placed = order(heights, PORTRAIT, above, 2)
    assert sorted(placed) == list(range(len(heights)))
    mine = _pages(heights, placed, room)

    def used(pages: list[list[list[int]]]) -> float:
        return sum(heights[each] for column in pages[0] for each in column)

    for column in mine[0]:
        assert sum(heights[each] for each in column) <= room[0] + 1e-6
    if heights[0] <= room[0]:
        assert placed[0] == 0  # the fabric is what one looks at first, and messages next
        if len(heights) > 1 and heights[1] <= room[0]:
            assert any(1 in column for column in mine[0])
    for _ in range(200):
        others = rng.sample(range(2, len(heights)), max(0, len(heights) - 2))
        tried = _pages(heights, [0, *range(1, min(2, len(heights))), *others], room)
        if max(heights[:2]) <= room[0]:
            # What matters first counts a tenth of its height, and less with every place.
            least = used(tried) - 0.1 * sum(heights)
            assert used(mine) >= least
    if len(mine) > 1:
        first_of_next = mine[1][0][0]
        assert heights[first_of_next] > min(
            room[0] - sum(heights[each] for each in column) for column in mine[0]
        )


def test_what_is_higher_than_a_page_is_printed_all_the_same() -> None:
    heights = [300.0, 5000.0, 200.0]
    placed = order(heights, PORTRAIT, 300, 2)
    assert sorted(placed) == [0, 1, 2] and placed[0] == 0
    assert len(order([100.0] * 30, PORTRAIT, 2000, 1)) == 30
    assert all(a < b for a, b in pairwise(order([100.0] * 30, PORTRAIT, 0, 1)))
