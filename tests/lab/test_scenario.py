from pathlib import Path

import pytest

from lab.errors import ScenarioError
from lab.scenario import catalogue, shipped
from lab.scenario.experiment import Experiment
from lab.scenario.traffic import AllPairs


def test_every_shipped_scenario_is_sound_and_named_after_its_file() -> None:
    assert shipped.names()
    for name in shipped.names():
        loaded = catalogue.load(name)
        assert loaded.name == name
        assert loaded.about.strip()


def test_set_overrides_any_key() -> None:
    loaded = catalogue.load("hello", ("traffic.bytes=1MB", "topology.spines=4", "seed=7"))
    assert loaded.traffic == AllPairs(bytes=1_000_000)
    assert (loaded.topology.spines, loaded.seed) == (4, 7)


@pytest.mark.parametrize(
    ("written", "size"), [("12", 12), ("16KB", 16_000), ("1.5 MB", 1_500_000), ("2KiB", 2048)]
)
def test_sizes(written: str, size: int) -> None:
    loaded = catalogue.load("hello", (f"traffic.bytes={written}",))
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
        (
            "hello",
            ("topology={kind: two-fabrics, front_rate_gbps: 25}", "buffer.bytes=400KB"),
            "400,000 are too small",
        ),
        ("hello", ("buffer.alpha=0.3",), "power of two"),
        ("hello", ("ecn.kmin=5MB",), "kmin must not be more"),
        ("hello", ("lb.policy=magic",), "lb.policy"),
        ("hello", ("transport.cc=bbr",), "transport.cc"),
        ("hello", ("link.slow.leaf1-spine9=0.5",), "no link 'leaf1-spine9' in this fabric"),
        ("hello", ("link.slow.leaf1-spine1=2",), "link.slow.leaf1-spine1"),
        ("hello", ("tenants={blue: [h9]}",), "no host 'h9' in this fabric"),
        ("hello", ("tenants={blue: [h1], red: [h1]}",), "h1 is named twice"),
        ("hello", ("overlay.kind=vxlan",), "there are no tenants"),
        ("evpn-tenants", ("tenants={blue: [h9]}",), "no host 'h9' in this fabric"),
        ("evpn-tenants", ("link.ip=6",), "tenants speak IPv4"),
        ("evpn-tenants", ("access=[{src: h1, allow: false}]",), "which tenants share"),
        ("evpn-tenants", ("segments.enabled=true",), "segments steer by addresses"),
        ("evpn-tenants", ("lb.policy=conga",), "conga cannot see into a tunnel"),
        ("evpn-tenants", ("int.share=0.1",), "does not see into tunnels"),
        ("evpn-tenants", ("classes.trust=pcp",), "tags stay inside"),
        ("evpn-tenants", ("trim.enabled=true", "pfc.enabled=false"), "trim would cut"),
        ("hello", ("control.kind=bgp", "segments.enabled=true"), "no ways to micro-segments"),
        ("deadlock", ("faults.2.link=x",), "'2' is no entry of this list"),
        ("deadlock", ("faults.link=x",), "'link' is no entry of this list"),
        ("pfc-storm", ("faults.0.host=h9",), "no host 'h9' in this fabric"),
        ("pfc-storm", ("faults.0.link=leaf1-spine1",), "storm happens to a host"),
        ("hello", ("faults=[{at_ns: 0, action: storm, host: h1}]",), "say how long"),
        ("hello", ("faults=[{at_ns: 0, action: down}]",), "down happens to a link"),
        (
            "hello",
            ("faults=[{at_ns: 0, action: lose, link: leaf1-spine1}]",),
            "rate is a probability: give it with lose",
        ),
        ("hello", ("faults=[{at_ns: 0, action: slow, link: leaf1-spine1}]",), "share is what"),
        ("hello", ("measures.pcap=[leaf1-spin1]",), "no link 'leaf1-spin1' in this fabric; did"),
        ("hello", ("measures.serie=false",), "did you mean 'measures.series'"),
        ("hello", ("buffer.size=1",), "unknown key 'buffer.size'; buffer has bytes, alpha"),
        ("hello", ("pfc.enabled=maybe",), "pfc.enabled: it must be true or false (got 'maybe')"),
        ("hello", ("traffic.bytes=0",), "traffic.bytes: it must be at least 1 (got 0)"),
        (
            "alltoall",
            ("topology.spines=65", "buffer.bytes=9MB"),
            "leaf1 has 65 equal ways to one prefix; a group holds 64: build the fabric with fewer",
        ),
        ("hello", ("int.mtu=1KB", "transport.cc=hpcc"), "HPCC has to hear of every hop"),
        ("hello", ("access=[{allow: false, src: h9}]",), "there is no host 'h9' in this fabric"),
        ("hello", ("access=[{allow: false, dst: 10.0.1.1/8}]",), "has host bits set; write a host"),
        ("hello", ("access=[{src: h1}]",), "access.0.allow"),
        (
            "hello",
            ("transport.endpoint=scrapy",),
            "it must be one of 'core', 'scapy'",
        ),
        (
            "hello",
            ("transport={endpoint: scapy, cc: hpcc}",),
            "the scapy endpoint knows no cc hpcc: make that none, or take endpoint core",
        ),
        (
            "hello",
            ("transport={endpoint: scapy, recovery: selective}",),
            "knows no recovery selective: make that go-back-n",
        ),
        (
            "hello",
            ("transport={endpoint: scapy, receive_gbps: 9}",),
            "knows no receive_gbps 9.0: leave that out",
        ),
        ("pfc-storm", ("transport.endpoint=scapy",), "cannot be made to send a storm (h1)"),
    ],
)
def test_a_mistake_is_named(name: str, changes: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        catalogue.load(name, changes)
    assert complaint in f"{caught.value.message} {caught.value.cure}"


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("deadlock", "traffic.flows.0.dst=h9", "there is no h9; they are h1 to h8"),
        ("deadlock", "traffic.flows.0.dst=h1", "h1 sends to itself"),
        ("incast", "traffic.receiver=h9", "there is no h9; they are h1 to h8"),
        ("straggler", "traffic.stragglers.0.rank=8", "no rank 8 to slow down"),
        ("training-llama", "traffic.parallelism.data=3", "do not divide"),
        ("rails", "topology.servers=2", "16 ranks do not fit on 8 free hosts"),
    ],
)
def test_traffic_that_does_not_fit_is_named(name: str, change: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Experiment.of(catalogue.load(name, (change,)))
    assert complaint in caught.value.message


@pytest.mark.parametrize("content", ["{", "- a\n- b\n", "", "\x00", "name: [1, 2]\n"])
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(content)
    with pytest.raises(ScenarioError):
        catalogue.load(str(path))


@pytest.mark.parametrize("deep", ["[" * 20_000 + "]" * 20_000, "{a: " * 20_000 + "}" * 20_000])
def test_what_is_nested_without_end_is_refused(tmp_path: Path, deep: str) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(f"name: deep\nabout: Too deep.\ntraffic: {deep}\n")
    with pytest.raises(ScenarioError, match=r"deep\.yaml: it is nested too deeply"):
        catalogue.read(str(path))
    with pytest.raises(ScenarioError, match=r"--set traffic: .* too deeply"):
        catalogue.read("incast", (f"traffic={deep}",))


def test_set_reaches_into_lists() -> None:
    loaded = catalogue.load("deadlock", ("faults.1.link=leaf2-spine1", "traffic.flows.0.dst=h8"))
    assert loaded.faults[1].link == "leaf2-spine1"
    assert loaded.traffic.model_dump()["flows"][0]["dst"] == 7
