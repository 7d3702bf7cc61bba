"""`closlab check` and `closlab import` of a SKU's folder, and findings as SARIF and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.configs.basis import Options
from lab.configs.book import BOOK
from lab.configs.device import read_device
from lab.configs.fabric import read_fabric
from lab.configs.failures import Net, look
from lab.configs.lookup import read_rows
from lab.configs.output import content
from lab.configs.page import page
from lab.configs.rules import check
from lab.configs.sarif import sarif
from lab.errors import ScenarioError
from tests.imports import ROOT
from tests.lab.any_damage import outcome
from tests.lab.any_dialect import FAULTS as OF_TEXTS
from tests.lab.config_folders import FAULTS, faulty, need
from tests.lab.conftest import closlab
from tests.lab.sku_folders import write_sku


def test_a_sku_is_rendered_and_has_the_groups_that_buffermgrd_makes(tmp_path: Path) -> None:
    sku = write_sku(tmp_path)
    device = read_device(sku, None, "", Options())
    assert device.fabric is not None, device.not_rendered
    (switch,) = device.fabric.switches.values()
    assert (switch.name, sorted(switch.ports)) == (
        "SKU-32",
        ["Ethernet0", "Ethernet4", "Ethernet8"],
    )
    port = switch.ports["Ethernet8"]
    assert port.cable_m == 40
    assert port.groups == {0: "ingress_lossy_profile", 3: "pg_lossless_25000_40m_profile",
                           4: "pg_lossless_25000_40m_profile"}  # fmt: skip
    assert switch.profiles["pg_lossless_100000_40m_profile"].xoff == 61440
    assert port.turns[8] == "scheduler.0"
    (first, _, far) = device.rows
    assert (first.large, first.short) == (need(25_000, 40), 0)
    assert far.short == need(100_000, 300) - 70_000 > 0
    assert check(device.fabric, Options()) == [
        one for one in check(device.fabric, Options()) if one.table == "PFC_WD"
    ]


def test_a_sku_is_checked_and_brought_by_commands(tmp_path: Path) -> None:
    sku = write_sku(tmp_path)
    done = closlab("check", str(sku))
    assert (done.returncode, "1 switch, 3 ports: 0 findings" in done.stdout) == (0, True), done
    assert "70,000" in done.stdout
    rows = (sku / "pg_profile_lookup.ini").read_text()
    (sku / "pg_profile_lookup.ini").write_text(rows.replace("40960", "20480"))
    done = closlab("check", str(sku), "--json", "--prove")
    output = json.loads(done.stdout)
    assert done.returncode == 1
    assert [one["rule"] for one in output["findings"]] == ["headroom-small"]
    assert output["findings"][0]["proof"]["before"]["lost"] > 0
    assert [row["short"] > 0 for row in output["rows"]] == [True, False, True]
    done = closlab("import", str(sku), "-o", str(tmp_path / "lab"))
    assert (done.returncode, "a host at each of 3 ports" in done.stdout) == (0, True), done.stderr
    done = closlab("check", str(sku), "--hosts", "x")
    assert (done.returncode, "--hosts is for" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pg_profile_lookup.ini", "100000 40m 1 2\n", "pg_profile_lookup.ini:1: '100000 40m 1 2'"),
        ("pg_profile_lookup.ini", "100000 4km 1 2 3 4\n", "is no row"),
        ("buffers.json.j2", "{% for a in range(9) %}", "cannot be rendered: TemplateSyntaxError"),
        ("buffers.json.j2", "{% include 'gone.j2' %}", "there is no template"),
        ("buffers.json.j2", "{{ ().__class__.__mro__ }}", "cannot be rendered: SecurityError"),
        ("buffers.json.j2", "{{ 'x' * 10**11 }}", "cannot be rendered"),
        ("buffers.json.j2", "[1]", "makes no tables"),
        ("buffers.json.j2", "{,}", "makes no JSON"),
        ("port_config.ini", "nothing", "PORT"),
    ],
)
def test_what_is_wrong_with_a_sku_is_told(name: str, text: str, says: str, tmp_path: Path) -> None:
    sku = write_sku(tmp_path)
    (sku / name).write_text(text)
    if name != "pg_profile_lookup.ini":
        device = read_device(sku, None, "", Options())
        assert (device.fabric, len(device.rows)) == (None, 3)
        assert says in device.not_rendered
        (sku / "pg_profile_lookup.ini").unlink()
    with pytest.raises(ScenarioError) as error:
        read_device(sku, None, "", Options())
    assert says in error.value.message
    assert error.value.message.isprintable()


def test_cages_are_broken_out_as_they_say(tmp_path: Path) -> None:
    sku = write_sku(tmp_path)
    modes = {"Ethernet0": "2x25G(2)+1x50G(2)", "Ethernet4": "1x1000[100,10]"}
    cages = {name: {"lanes": f"{at},{at + 1},{at + 2},{at + 3}"} for at, name in
             ((0, "Ethernet0"), (4, "Ethernet4"))}  # fmt: skip
    (sku / "hwsku.json").write_text(json.dumps(
        {"interfaces": {name: {"default_brkout_mode": mode} for name, mode in modes.items()}}
    ))  # fmt: skip
    (sku.parent / "platform.json").write_text(json.dumps({"interfaces": cages}))
    device = read_device(sku, None, "", Options())
    assert {name: one["speed"] for name, one in device.tables["PORT"].items()} == {
        "Ethernet0": "25000", "Ethernet1": "25000", "Ethernet2": "50000", "Ethernet4": "1000",
    }  # fmt: skip
    assert read_rows(sku / "pg_profile_lookup.ini")[0].name == "pg_lossless_25000_40m_profile"


# --- as files -------------------------------------------------------------------------------------


def test_sarif_and_the_page_have_every_finding_at_its_place(tmp_path: Path) -> None:
    drawn, rule, (switch, _, key) = faulty(4, "mtu")
    folder = drawn.write(tmp_path / "in")
    done = closlab("check", str(folder), "--sarif", str(tmp_path / "a.sarif"), "--page",
                   str(tmp_path / "a.html"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "a.sarif").read_text())
    (run,) = made["runs"]
    (result,) = run["results"]
    assert made["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == rule
    assert result["level"] == "note"
    place = result["locations"][0]["physicalLocation"]
    lines = Path(place["artifactLocation"]["uri"]).read_text().splitlines()
    assert f'"{key}"' in lines[place["region"]["startLine"] - 1]
    html = (tmp_path / "a.html").read_text()
    assert f"advice: {rule}: {switch} PORT|{key}" in html
    assert html.count("<rect") == len(drawn.switches)
    assert closlab("check", str(folder), "--page", str(tmp_path / "a.html")).returncode == 1


def test_names_of_strangers_do_nothing_in_a_page(tmp_path: Path) -> None:
    drawn, _, _ = faulty(4, "dangling")
    drawn.switches["tor0"]["BUFFER_PROFILE"]["<script>alert(1)</script>"] = {
        "dynamic_th": "99", "pool": "egress_lossy_pool",
    }  # fmt: skip
    fabric = read_fabric(drawn.write(tmp_path))
    pairs = [(one, None) for one in check(fabric, Options())]
    assert "<script>alert" not in page("<b>", fabric, list(pairs), ["<script>alert(1)</script>"])
    assert len(content(fabric, list(pairs), None)["findings"]) == len(pairs) == 2
    assert len(sarif(fabric, tmp_path, list(pairs))["runs"][0]["results"]) == 2


def test_every_rule_is_in_the_book_and_on_the_page_and_has_a_fault_to_be_found() -> None:
    text = (ROOT / "docs" / "production.md").read_text()
    assert [name for name in BOOK if f"`{name}`" not in text] == []
    drawn = {rule for rule, _ in FAULTS.values()} | {one.rule for one in OF_TEXTS.values()}
    assert drawn <= BOOK.keys()
    assert BOOK.keys() - drawn == {"pfc-nowhere", "speed-differs", "neighbour-contradicts"}
    assert len(BOOK) >= 40


def test_failures_that_close_circles_are_found_by_trying_all_as_well() -> None:
    """Of any two cables, against trying each pair of them."""
    for leaves, spines in ((3, 2), (4, 2), (4, 3), (5, 2)):
        joined = {(f"a{s}", f"b{leaf}"): 1 for s in range(spines) for leaf in range(leaves)}
        ends = [f"b{leaf}" for leaf in range(leaves)]
        names = [*ends, *(f"a{s}" for s in range(spines))]
        net = Net(joined, ends, {}, names)
        pairs = sorted(joined)
        tried = any(
            net.without(frozenset((one, other))).circles() for one in pairs for other in pairs
        )
        assert bool(look(net).deadlocks) == tried, (leaves, spines)


@pytest.mark.by_day(14)
@pytest.mark.parametrize("seed", range(40))
def test_damage_ends_in_a_message_or_in_findings(seed: int, tmp_path: Path) -> None:
    assert outcome(1000 + seed, tmp_path) in ("refused", "found", "nothing found")
