"""What the model of shared turns makes of turns whose spans are plain."""

from bench.cores import by_ranks, by_threads

EVEN = [(part, 10) for part in range(8)]
ONE = [(0, 80)]
FRONT = [(0, 30), (1, 30), (2, 10), (3, 10)]


def _threads(turn: list[tuple[int, int]], workers: int, parts: int = 8) -> int:
    return round(by_threads(turn, workers, parts, 1000.0) / 1000)


def test_threads_share_what_can_be_shared() -> None:
    assert [_threads(EVEN, workers) for workers in (1, 2, 4, 8, 16)] == [80, 40, 20, 10, 10]
    assert [_threads(ONE, workers) for workers in (1, 2, 8)] == [80, 80, 80]
    # The first of two has parts 0 and 1; the second takes the last two and then one of these.
    assert _threads(FRONT, 2, parts=4) == 50


def test_ranks_keep_their_parts() -> None:
    def span(owners: list[int], workers: int) -> int:
        return round(by_ranks(FRONT, owners, workers, 1000.0) / 1000)

    assert span([0, 0, 1, 1], 2) == 60
    assert span([0, 1, 0, 1], 2) == 40
