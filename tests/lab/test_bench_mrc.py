"""`closlab bench mrc`: the order of MRC's figure 16 in small, below a bound worked out by hand."""

from pathlib import Path

import pytest

from bench import mrc
from lab.report.sweep import read_sweep


def test_the_order_of_the_schools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen hosts: what one queue pair loses to its hash, and what no transport passes."""
    words = ["--racks", "4", "--bytes", "2MB,4MB", "--jobs", "1", "--out", str(tmp_path)]
    assert mrc.main(words) == 0
    assert capsys.readouterr().out.count("holds: ") == 4
    sweep = read_sweep(tmp_path)
    found = mrc.found_in(sweep)
    assert list(found) == list(mrc.SCHOOLS)
    # 4,096 of 4,178 bytes on the wire are payload; 30 rounds of 2 MB / 16 do not wait for a way.
    by_hand = 400 * 4096 / 4178
    assert sweep.bounds["collective.busbw_gbps"]["2MB"] == pytest.approx(by_hand, rel=0.001)
    for points in found.values():
        assert all(points[at] <= mrc.Fabric(4).bound_gbps(at) for at in (2_000_000, 4_000_000))


def test_what_does_not_hold_is_said() -> None:
    """Each saying by itself, of figures that break it."""
    good = {mrc.ONE: 100.0, mrc.MANY: 300.0, mrc.MRC: 380.0, mrc.LOSSY: 370.0}
    for school, value in ((mrc.ONE, 201), (mrc.MANY, 381), (mrc.LOSSY, 360)):
        found = {name: {1e6: at} for name, at in (good | {school: value}).items()}
        assert list(mrc.sayings(found, {1e6: 390.0}).values()).count(False) == 1, school
    found = {name: {1e6: at} for name, at in good.items()}
    assert all(mrc.sayings(found, {1e6: 390.0}).values())
    assert list(mrc.sayings(found, {1e6: 430.0}).values()).count(False) == 1


def test_every_hop_of_the_ring_leads_to_another_rack() -> None:
    changes = mrc.Fabric(8).changes()
    (told,) = (change.partition("=")[2] for change in changes if change.startswith("traffic.ranks"))
    ranks = [int(name[1:]) for name in told.strip("[]").split(", ")]
    assert sorted(ranks) == list(range(1, 65))
    racks = [(number - 1) // 8 for number in ranks]
    assert all(one != other for one, other in zip(racks, [*racks[1:], racks[0]], strict=True))


@pytest.mark.parametrize("words", ["--bytes 4QB", "--bytes 0", "--bytes 1MB,1MB", "--racks 1"])
def test_nonsense_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mrc.main(words.split())
    assert words.split()[1].partition(",")[0] in capsys.readouterr().err
