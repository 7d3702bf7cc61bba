"""Fabrics that come from files, and go into pictures."""

import json
from pathlib import Path

from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from tests.topologies.test_tutorial import POD


def test_a_tutorials_file_is_a_fabric_to_run_on(tmp_path: Path) -> None:
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(POD))
    topology = f"topology={{kind: file, path: '{file}'}}"
    found = simulate("incast", topology, "traffic.bytes=20KB", out=tmp_path / "out")
    assert found.result.flows.completed == 3
    assert found.result.drops.total == 0


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    done = closlab("run", "hello", "--set", f"topology={{kind: file, path: '{tmp_path}/none'}}")
    assert done.returncode != 0
    assert f"{tmp_path}/none cannot be read: No such file" in done.stderr.replace("\n", " ")


def test_a_scenarios_fabric_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "fabric.dot"
    assert (
        closlab("draw", "hello", "-o", str(picture), "--set", "topology.leaves=2").returncode == 0
    )
    text = picture.read_text()
    assert text.startswith("graph fabric {")
    assert "leaf2 -- spine2 [taillabel=4, headlabel=2];" in text
    for wrong in (tmp_path / "fabric.gif", tmp_path / "nowhere" / "fabric.dot"):
        done = closlab("draw", "hello", "-o", str(wrong))
        assert done.returncode != 0
        assert str(wrong) in done.stderr.replace("\n", "")
        assert "Traceback" not in done.stderr
