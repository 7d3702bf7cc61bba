from pathlib import Path

import pytest

from lab import scenario
from lab.errors import ScenarioError
from lab.traffic import AllPairs


def test_every_shipped_scenario_is_sound_and_named_after_its_file() -> None:
    assert scenario.names()
    for name in scenario.names():
        loaded = scenario.load(name)
        assert loaded.name == name
        assert loaded.about.strip()


def test_set_overrides_any_key() -> None:
    loaded = scenario.load("hello", ("traffic.bytes=1MB", "topology.spines=4", "seed=7"))
    assert loaded.traffic == AllPairs(bytes=1_000_000)
    assert (loaded.topology.spines, loaded.seed) == (4, 7)


@pytest.mark.parametrize(
    ("written", "size"), [("12", 12), ("16KB", 16_000), ("1.5 MB", 1_500_000), ("2KiB", 2048)]
)
def test_sizes(written: str, size: int) -> None:
    loaded = scenario.load("hello", (f"traffic.bytes={written}",))
    assert loaded.traffic == AllPairs(bytes=size)


@pytest.mark.parametrize(
    ("name", "changes", "complaint"),
    [
        ("helo", (), "no scenario 'helo'; did you mean 'hello'"),
        ("nowhere/x.yaml", (), "no scenario file"),
        ("hello", ("topology.spine=3",), "topology.spine'; did you mean 'topology.spines'"),
        ("hello", ("trafic.bytes=3",), "unknown key 'trafic'; did you mean 'traffic'"),
        ("hello", ("traffic.bytes=many",), "'many' is not understood; write a number of bytes"),
        ("hello", ("traffic.bytes=0",), "traffic.bytes"),
        ("hello", ("link.mtu=1500",), "link.mtu"),
        ("hello", ("topology.leaves=0",), "leaves is 0; it must be from 1 to"),
        ("hello", ("topology=star",), "topology"),
        ("hello", ("name.first=x",), "'name' is a value, not a section"),
        ("hello", ("traffic.bytes",), "write it as KEY=VALUE"),
        ("hello", ("seed=-1",), "seed"),
        ("hello", ("traffic.kind=incats",), "did you mean 'incast'"),
        ("hello", ("traffic.sender=3",), "unknown key 'traffic.sender'"),
        (
            "hello",
            ("loss.links=[leaf1-spine9]",),
            "no link 'leaf1-spine9' in this fabric; did you mean",
        ),
        ("hello", ("buffer.bytes=10KB",), "too small"),
        ("hello", ("buffer.alpha=0.3",), "power of two"),
        ("hello", ("ecn.kmin=5MB",), "kmin must be less"),
        ("hello", ("lb.policy=magic",), "lb.policy"),
        ("hello", ("transport.cc=bbr",), "transport.cc"),
    ],
)
def test_a_mistake_is_named(name: str, changes: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.load(name, changes)
    assert complaint in f"{caught.value.message} {caught.value.cure}"


@pytest.mark.parametrize("content", ["{", "- a\n- b\n", "", "\x00", "name: [1, 2]\n"])
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(content)
    with pytest.raises(ScenarioError):
        scenario.load(str(path))
