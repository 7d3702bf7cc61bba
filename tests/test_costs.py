"""What `closlab test --quick` takes: the most cases for the time."""

from pathlib import Path

from tests import costs
from tests.costs import Cost, cheap

ROOT = Path(__file__).parent.parent


def test_the_cheapest_cases_come_first() -> None:
    many, one, slow = Cost("many", 100, 2.0), Cost("one", 1, 0.5), Cost("slow", 2, 8.0)
    assert cheap([slow, one, many], 10.5) == {"many", "one", "slow"}
    assert cheap([slow, one, many], 10.4) == {"many", "one"}
    assert cheap([slow, one, many], 2.0) == {"many"}


def test_what_is_noted_is_there() -> None:
    """A file that is gone costs nothing; most cases are quick, at a small part of the cost."""
    noted = costs.noted()
    files = {cost.function.partition("::")[0] for cost in noted}
    assert not [name for name in files if not (ROOT / name).exists()]
    chosen = cheap(noted)
    quick = [cost for cost in noted if cost.function in chosen]
    assert sum(cost.cases for cost in quick) > sum(cost.cases for cost in noted) / 2
    assert sum(cost.seconds for cost in quick) < sum(cost.seconds for cost in noted) / 10
