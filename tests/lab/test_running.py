"""Word of running labs: whoever looks for one does no harm to another that is just starting."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controller import Settings
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.journal import Journal
from lab.engines.mininet.running import Registration, find, running
from lab.errors import LabError, RunError
from lab.machine.certificates import Certificates
from topologies import leaf_spine

HOSTS, SWITCHES, LINKS = {"h1": 7}, {"leaf1": ("127.0.0.1:1", 1)}, {"h1-leaf1": "leaf1-eth1"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path))
    yield tmp_path


@pytest.mark.parametrize("labs", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_looking_never_disturbs_a_lab_that_starts(folder: Path, labs: int) -> None:
    over = threading.Event()
    failures: list[Exception] = []

    def look() -> None:
        try:
            while not over.is_set():
                running()
        except Exception as error:
            failures.append(error)

    watchers = [threading.Thread(target=look) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    try:
        for number in range(labs):
            registration = Registration(f"lab{number}")
            registration.announce(os.getpid())
            certificates = Certificates(folder / "shown") if number % 2 else None
            registration.furnish(HOSTS, SWITCHES, LINKS, {}, certificates)
            found = find(registration.name)
            assert (found.hosts, found.certificates) == (HOSTS, certificates)
            registration.withdraw()
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()
    assert not failures
    assert not list(folder.iterdir())


def test_what_a_dead_lab_left_is_swept_away(folder: Path) -> None:
    registration = Registration("gone")
    registration.announce(os.getpid())
    written = next(folder.glob("*/sandbox.json"))
    written.write_text(json.dumps(json.loads(written.read_text()) | {"started": "1"}))
    with pytest.raises(LabError, match="no lab is running"):
        find()
    assert not list(folder.iterdir())


def test_from_another_process_namespace_nothing_is_judged(folder: Path) -> None:
    """There the same number is another process."""
    registration = Registration("elsewhere")
    registration.announce(os.getpid())
    registration.furnish(HOSTS, SWITCHES, LINKS, {})
    written = next(folder.glob("*/sandbox.json"))
    content = json.loads(written.read_text())
    written.write_text(json.dumps(content | {"seen_from": "pid:[1]", "pid": 2**22 + 1}))
    assert running() == []
    written.write_text(json.dumps(content))
    assert find().switches == SWITCHES


def test_a_cable_that_cannot_be_cut_is_told(tmp_path: Path) -> None:
    fabric = leaf_spine(1, 1, 1)
    emulation = Emulation(fabric, None, Settings())
    for is_up, what in ((False, "cut"), (True, "mended")):
        with pytest.raises(RunError, match=f"h1-leaf1 could not be {what}: .*leaf1-eth"):
            emulation.set_up(fabric.links[0], is_up=is_up)


def test_two_may_write_down_what_they_do_at_once(tmp_path: Path) -> None:
    journal, path = Journal(), tmp_path / "journal.json"
    journal.keep_in(path)

    def work(cable: str) -> None:
        for turn in range(200):
            journal.turned(cable, is_up=turn % 2 == 1)

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(work, cable) for cable in ("a", "b", "c")]:
            done.result()
    content = json.loads(path.read_text())
    assert content["cut"] == [] and len(content["events"]) == 200
