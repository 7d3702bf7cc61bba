"""What the simulator came to when somebody last looked, it comes to now."""

import json

import pytest

from tests.lab.snapshots import RENEW, SNAPSHOTS, Figures, cases, figures_of, moved

KEPT: dict[str, Figures] = json.loads(SNAPSHOTS.read_text())


def test_each_has_its_scenario() -> None:
    assert list(KEPT) == cases(), f"run: {RENEW}"


@pytest.mark.parametrize("name", KEPT)
def test_no_figure_moved(name: str) -> None:
    differences = moved(KEPT[name], figures_of(name))
    assert not differences, "\n".join(
        (
            f"{name} is not what it was:",
            *differences,
            f"If that is meant: {RENEW}, and review the difference.",
        )
    )


def test_what_moved_is_named() -> None:
    before: Figures = {"dropped": 0, "marked": 5, "digest": "a"}
    assert moved(before, dict(before)) == []
    assert moved(before, {"dropped": 2, "marked": 5, "digest": "b"}) == [
        "dropped: 0 is now 2",
        "digest: a is now b",
    ]


def test_the_sweep_meets_what_it_watches() -> None:
    """A figure that is nought in all of them would notice nothing."""
    for key in next(iter(KEPT.values())):
        assert any(figures[key] for figures in KEPT.values()), key
