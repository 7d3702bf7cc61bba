"""`closlab bench htsim`: what another simulator is asked, and what is told of both."""

import json
import os
from pathlib import Path

import pytest

from bench import htsim
from tests.stand_ins import stand_in

# Ends every message it is asked for but the last, if there is a file named FEWER beside it.
_HTSIM = """\
case "$*" in *"-topo fabric.topo -tm pairs.cm"*"-linkspeed 100000"*) ;; *) exit 2 ;; esac
grep -q 'Radix_Up 8' fabric.topo || exit 3
cp pairs.cm "$(dirname "$0")"
grep -- '->' pairs.cm | sed 's/.*/Flow Roce finished at 1/' >flows
[ ! -e "$(dirname "$0")/FEWER" ] || sed -i '$d' flows
cat flows
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_in(tmp_path / "htsim_roce", _HTSIM)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_it_is_asked_for_the_same_job(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = there / "figures.json"
    words = ["--rounds", "1", "--jobs", "1", "--bytes", "40001", "--json", str(figures)]
    assert htsim.main(words) == 0
    pairs = (there / "pairs.cm").read_text().split("\n")
    assert pairs[:2] == ["Nodes 128", "Connections 128"]
    ends = [pair.split()[0].split("->") for pair in pairs[2:] if pair]
    assert {int(src) for src, _ in ends} == {int(dst) for _, dst in ends} == set(range(128))
    assert all(int(dst) // 8 == (int(src) // 8 + 1) % 16 for src, dst in ends)
    assert all(pair.endswith(" start 0 size 40001") for pair in pairs[2:] if pair)
    found = json.loads(figures.read_text())
    assert found["htsim"][0][1] == 128 * 11 * 2 * 4  # packets and acknowledgements, by links
    output = capsys.readouterr().out
    their, our = found["htsim"][0][0], found["closlab, 1"][0][0]
    assert f"{their / our:.2f} times as quick" in output


def test_messages_that_did_not_end_are_no_figure(there: Path) -> None:
    (there / "FEWER").touch()
    with pytest.raises(SystemExit, match="0 and 127 of 128 messages"):
        htsim.main(["--rounds", "1", "--jobs", "1", "--bytes", "4000"])


def test_without_it_ours_stands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert htsim.main(["--rounds", "1", "--jobs", "1", "--bytes", "4000"]) == 0
    output = capsys.readouterr().out
    assert "times as quick" not in output and "htsim_roce is not on PATH" in output
