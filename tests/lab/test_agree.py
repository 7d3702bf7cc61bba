"""The simulator and Mininet come to the same results."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.runs.agree import CASES, compare
from tests.lab.conftest import CLOSLAB, closlab

ATTEMPTS = 3

RESULT: dict[str, Any] = {
    "flows": {"failed": 0, "fct_ns": {"p99": 900.0, "max": 1000.0}},
    "drops": {"total": 0},
    "pfc": {"xoff_frames": 200},
    "ecn": {"marked_packets": 40},
    "fidelity": {"ok": True},
}


def changed(section: str, key: str, value: object) -> dict[str, Any]:
    result = copy.deepcopy(RESULT)
    result[section][key] = value
    return result


def test_what_is_close_agrees() -> None:
    close = changed("flows", "fct_ns", {"p99": 985.0, "max": 1050.0})
    close["pfc"]["xoff_frames"] = 160
    close["ecn"]["marked_packets"] = 60
    verdict = compare(RESULT, close)
    assert verdict.complaints == ()
    assert verdict.time_ratio == pytest.approx(985 / 900)


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (changed("flows", "fct_ns", {"p99": 900.0, "max": 1120.0}), "times differ by 12%"),
        (changed("flows", "fct_ns", {"p99": 790.0, "max": 1000.0}), "times differ by 12%"),
        (changed("flows", "failed", 1), "not everything arrived"),
        (changed("drops", "total", 1), "drops in one only"),
        (changed("pfc", "xoff_frames", 140), "pauses differ by 30%"),
        (changed("ecn", "marked_packets", 66), "marks differ by 39%"),
    ],
)
def test_what_differs_is_named(other: dict[str, Any], complaint: str) -> None:
    assert compare(RESULT, other).complaints == (complaint,)
    assert len(compare(other, RESULT).complaints) == 1


def test_jobs_are_compared_by_their_time() -> None:
    a, b = RESULT | {"jct_ns": 5000}, RESULT | {"jct_ns": 5600}
    assert compare(a, b).complaints == ("times differ by 12%",)


def test_an_unknown_case_is_refused(tmp_path: Path) -> None:
    done = closlab("agree", "outcast", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "no case is called 'outcast'" in done.stderr
    assert "incast, PFC" in done.stderr


def agrees(name: str, out: Path) -> None:
    """Let a case be run, again and more slowly if the machine had other things to do."""
    for attempt in range(ATTEMPTS):
        folder = out / str(attempt)
        slower = ("--dilation", str(8_000 << attempt)) if attempt else ()
        command = [*CLOSLAB, "agree", name, "--out", str(folder), *slower]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    for engine in ("sim", "mininet"):
        assert json.loads((folder / f"1-{engine}" / "result.json").read_text())["engine"] == engine


@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["elephants, spray", "link failure"])
def test_quick_cases_agree(name: str, tmp_path: Path) -> None:
    agrees(name, tmp_path)


@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [case.title for case in CASES])
def test_all_cases_agree(name: str, tmp_path: Path) -> None:
    agrees(name, tmp_path)
