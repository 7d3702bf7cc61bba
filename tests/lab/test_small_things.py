"""Small things that once went wrong."""

import math
import os
from pathlib import Path

from lab.engines.mininet.running import Registration, running
from params.quantity import summed
from tests.lab.conftest import closlab
from views.report.sweep import as_numbers


def test_a_folder_used_again_keeps_no_captures_of_the_old_run(tmp_path: Path) -> None:
    words = ("run", "incast", "--engine", "sim", "--set", "traffic.bytes=10KB")
    out = ("--out", str(tmp_path))
    first = closlab(*words, *out, "--pcap-link", "leaf1-spine1")
    assert first.returncode == 0, first.stderr
    assert list((tmp_path / "pcaps").iterdir())
    assert closlab(*words, *out).returncode == 0
    assert not (tmp_path / "pcaps").exists()


def test_values_of_a_sweep_are_numbers_in_the_units_of_results() -> None:
    assert as_numbers(["500ns", "1us", "2.5us"]) == ["500", "1000", "2500"]
    assert as_numbers(["100KB", "4MB"]) == ["100000", "4000000"]
    assert as_numbers(["0.25", "1"]) == ["0.25", "1"]
    assert as_numbers(["ecmp", "1"]) == ["ecmp", "1"]


def test_another_kind_of_topology_leads_to_the_form_that_works() -> None:
    done = closlab("run", "incast", "--engine", "sim", "--set", "topology.kind=fat-tree")
    assert done.returncode == 1
    assert "--set 'topology={kind: fat-tree, k: 4}'" in done.stderr


def test_a_lab_that_begins_sweeps_away_what_killed_ones_left(own_cache: Path) -> None:
    dead, begins = own_cache / "hello-1", own_cache / "hello-2"
    for folder in (dead, begins):
        folder.mkdir(parents=True)
    (dead / "sandbox.json").write_text('{"pid": 4194305, "started": "1"}')  # no PID is so large
    mine = Registration("hello")
    mine.announce(os.getpid())
    assert sorted(own_cache.iterdir()) == sorted([begins, own_cache / mine.name])
    mine.withdraw()
    os.utime(begins, (0, 0))  # it did not begin after all
    assert running() == []
    assert not list(own_cache.iterdir())


def test_what_is_added_up_does_not_depend_on_pythons_version() -> None:
    """Each sum is rounded before the next is added, as `sum` does up to 3.11 alone."""
    assert summed([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1
    assert summed([0.1] * 10) != math.fsum([0.1] * 10)
    assert summed([1e16, 1.0, -1e16]) == 0 and summed([]) == 0
