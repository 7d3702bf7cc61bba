"""`closlab bench growth`: what became dearer is measured again before it is believed."""

import json
import random
import subprocess
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from bench import growth


def test_probes_are_told_apart() -> None:
    names = [probe.name for probe in growth.probes()]
    assert len(set(names)) == len(names) > 15


@pytest.mark.parametrize("seed", range(20))
def test_what_is_dearer_by_luck_is_not_believed_what_stays_is(seed: int) -> None:
    """Of figures by lot: noise only adds, so the least of all looks is what counts."""
    lot = random.Random(seed)
    true = {str(n): lot.uniform(1, 100) for n in range(30)}
    times = {name: lot.choice((0.5, 1.0, 1.1, 1.2, 2.0)) for name in true}

    def seen(names: Sequence[str], noise: float) -> dict[str, float]:
        return {name: true[name] * times[name] * (1 + noise * lot.random()) for name in names}

    looks = []

    def again(names: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
        looks.append(names)
        return seen(names, 0.0 if len(looks) > 1 else 5.0), {}

    stays = growth.settled(seen(list(true), 5.0), dict(true), again)
    assert set(stays) == {name for name, each in times.items() if each > growth.ALLOWED}
    assert all(stays[name] == pytest.approx(times[name]) for name in stays)
    assert len(looks) <= growth.AGAIN


def test_what_is_kept_with_the_code_is_of_all_that_is_measured() -> None:
    content = json.loads(growth.KEPT.read_text())
    assert set(content["figures"]) == {probe.name for probe in growth.probes()}


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ((1.0, 1.0, 1.0), 0),
        ((1.14, 1.14, 1.14), 0),
        ((9.0, 1.1, 0.7), 0),  # somebody else's time, once
        ((1.16, 1.16, 1.16), 1),
        ((0.9, 1.2, 1.3), 1),
    ],
)
def test_what_is_a_sixth_slower_than_what_was_kept_is_refused(
    times: tuple[float, ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A probe that takes as long as the test says, on a machine as quick as ever."""
    rounds = [*times] * (growth.AGAIN + 1)
    probe = growth.Probe("Anything", "hosts", "it", 1, lambda: 70.0 * rounds.pop(0))
    kept = tmp_path / "kept.json"
    figures = {"schema": growth.SCHEMA, "processor": "whose", "figures": {probe.name: 70.0}}
    kept.write_text(json.dumps(figures))
    monkeypatch.setattr(growth, "subprocess", SimpleNamespace(run=_here))
    monkeypatch.setattr(growth, "probes", lambda: iter([probe]))
    monkeypatch.setattr(growth, "_unit_ns", lambda: 1.0)
    assert growth.main(["--rounds", "3", "--check", str(kept)]) == code
    output = capsys.readouterr().out
    assert (f"{probe.name} costs {sorted(times)[1]:.2f} times what it did" in output) == bool(code)


def _here(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
    """What a process with these words would say, said by this one."""
    with redirect_stdout(StringIO()) as output:
        code = growth.main(words[3:])
    return subprocess.CompletedProcess(words, code, output.getvalue(), "")


@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_figures_are_kept_drawn_and_compared(
    alone: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With one probe, which is measured for real: every night in a process of its own."""
    if not alone:
        monkeypatch.setattr(growth, "subprocess", SimpleNamespace(run=_here))
    (probe,) = [each for each in growth.probes() if each.name == "exact, 10 entries"]
    monkeypatch.setattr(growth, "probes", lambda: iter([probe]))
    kept, picture = tmp_path / "kept.json", tmp_path / "plot.svg"
    words = ["--rounds", "1", "--json", str(kept), "--plot", str(picture)]
    assert growth.main(words) == 0
    content = json.loads(kept.read_text())
    assert content["figures"][probe.name] > 0
    ElementTree.fromstring(picture.read_text())

    content["figures"][probe.name] /= 1000
    kept.write_text(json.dumps(content))
    monkeypatch.setattr(growth, "AGAIN", 1)
    assert growth.main(["--rounds", "1", "--check", str(kept)]) == 1
    assert f"again: {probe.name}" in (output := capsys.readouterr().out)
    assert f"{probe.name} costs" in output

    kept.write_text("{}")
    with pytest.raises(SystemExit, match="no file of"):
        growth.main(["--check", str(kept)])
