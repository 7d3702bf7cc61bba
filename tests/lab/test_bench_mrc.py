"""`closlab bench mrc`: the order of MRC's figure 16 in small, below a bound worked out by hand."""

from pathlib import Path

import pytest

from bench import mrc
from lab.runs.sweep import Variant
from views.report.sweep import read_sweep

BUSBW = "collective.busbw_gbps"


@pytest.mark.slow
def test_the_order_of_the_schools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen hosts: what one queue pair loses to its hash, and what no transport passes."""
    words = ["--racks", "4", "--bytes", "2MB,8MB", "--jobs", "1", "--out", str(tmp_path)]
    assert mrc.main(words) == 0
    assert capsys.readouterr().out.count("holds: ") == 4
    sweep = read_sweep(tmp_path)
    found = mrc.found_in(sweep)
    assert list(found) == list(mrc.SCHOOLS)
    # 4,096 of 4,178 bytes on the wire are payload; 30 rounds of 2 MB / 16 do not wait for a way.
    by_hand = 400 * 4096 / 4178
    assert sweep.bounds[BUSBW]["2MB"] == pytest.approx(by_hand, rel=0.001)
    for points in found.values():
        assert all(max(points[at]) <= mrc.Fabric(4).bound_gbps(at) for at in (2e6, 8e6))
    # What was found is kept, and what fails is not.
    monkeypatch.setattr(mrc, "run_one", lambda _variant: "it is run again")
    for _ in range(2):
        again, other = (mrc.known_or_run(variant(tmp_path, seed)) for seed in (1, 10**6))
        assert isinstance(again, dict) and [again[BUSBW]] == found[mrc.MRC][2e6]
        assert other == "it is run again"


def variant(out: Path, seed: int) -> Variant:
    """One of the runs above, by another seed."""
    changes = (f"school={mrc.MRC}", "traffic.bytes=2MB", f"seed={seed}")
    return Variant(1, mrc.load(mrc.Fabric(4), changes), changes, out)


@pytest.mark.parametrize("others", [0, 1])
def test_what_does_not_hold_is_said(others: int) -> None:
    """Each saying by itself, of figures that break it, be it those of one seed among others."""
    good = {mrc.ONE: 100.0, mrc.MANY: 300.0, mrc.MRC: 380.0, mrc.LOSSY: 370.0}

    def broken(seed: dict[str, float], bound: float = 390.0) -> int:
        found = {name: {1e6: [seed[name], *[good[name]] * others]} for name in good}
        return list(mrc.sayings(found, {1e6: bound}).values()).count(False)

    for school, value in ((mrc.ONE, 201), (mrc.MANY, 381), (mrc.LOSSY, 360)):
        assert broken(good | {school: value}) == 1, school
    assert broken(good) == 0
    assert broken(good, 430.0) == 1


def test_every_hop_of_the_ring_leads_to_another_rack() -> None:
    changes = mrc.Fabric(8).changes()
    (text,) = (change.partition("=")[2] for change in changes if change.startswith("traffic.ranks"))
    ranks = [int(name[1:]) for name in text.strip("[]").split(", ")]
    assert sorted(ranks) == list(range(1, 65))
    racks = [(number - 1) // 8 for number in ranks]
    assert all(one != other for one, other in zip(racks, [*racks[1:], racks[0]], strict=True))


@pytest.mark.parametrize("words", ["--bytes 4QB", "--bytes 0", "--bytes 1MB,1MB", "--racks 1"])
def test_nonsense_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mrc.main(words.split())
    assert words.split()[1].partition(",")[0] in capsys.readouterr().err
