"""What is released is whole, the same whoever makes it, and says of itself what it is."""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from provision import version, wheels
from provision.wheels import PLATFORMS, SUMS
from switch import target

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = ROOT / ".github" / "workflows"
_RELEASED = """\
# Changelog

## 1.2.3 (2026-11-24)

## 1.2.2 (2026-11-20)
"""


def test_the_newest_changes_are_those_of_this_version() -> None:
    said, (noted, _) = version.version(), version.newest()
    assert noted == said
    assert re.fullmatch(r"\d+\.\d+\.\d+", said)


@pytest.mark.parametrize(
    ("tag", "project", "changes", "complaint"),
    [
        ("v1.2.3", "1.2.3", _RELEASED, None),
        ("v1.2.4", "1.2.4", _RELEASED, "CHANGELOG.md begins with 1.2.3"),
        ("v1.2.3", "1.2.4", _RELEASED, "pyproject.toml says 1.2.4"),
        ("1.2.3", "1.2.3", _RELEASED, "pyproject.toml says 1.2.3"),
        ("v1.2.3", "1.2.3", _RELEASED.replace("2026-11-24", "unreleased"), "'unreleased'"),
        ("v1.2.3", "1.2.3", "nothing", "CHANGELOG.md begins with"),
    ],
)
def test_a_tag_that_does_not_agree_is_refused(
    tmp_path: Path, tag: str, project: str, changes: str, complaint: str | None
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{project}"\n')
    (tmp_path / "CHANGELOG.md").write_text(changes)
    found = version.complaints(tag, tmp_path)
    assert bool(found) == (complaint is not None)
    assert complaint is None or any(complaint in each for each in found)


def test_workflows_call_what_is_there() -> None:
    """Files of ours, and actions of one version each; none may write but what publishes."""
    used: dict[str, set[str]] = {}
    for path in WORKFLOWS.glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}, path
        for job in workflow["jobs"].values():
            assert "permissions" not in job or path.name == "release.yml"
            for called in (job.get("uses"), *(step.get("uses") for step in job.get("steps", ()))):
                if called and called.startswith("./"):
                    assert (ROOT / called).exists()
                elif called:
                    name, _, kept_to = called.partition("@")
                    used.setdefault(name, set()).add(kept_to)
            for step in job.get("steps", ()):
                _check_words(step.get("run", ""))
    assert all(len(versions) == 1 for versions in used.values()), used


def _check_words(script: str) -> None:
    for word in re.findall(r"(?<!\.)(?:\./|provision/|requirements)[\w./-]+", script):
        assert (ROOT / word).exists(), word
    for module in re.findall(r"-m (provision\.\w+)", script):
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists(), module


def test_every_machine_that_has_a_wheel_of_its_own_is_tried() -> None:
    """By what their names begin with; and what is compared is what a run leaves."""
    tried = yaml.safe_load((WORKFLOWS / "wheels.yml").read_text())["jobs"]["try"]
    machines = tried["strategy"]["matrix"]["machine"]
    kinds = {("macos" if "macos" in name else "linux", "arm" in name or name == "macos-15")
             for name in machines}  # fmt: skip
    assert len(kinds) == len(machines) == len(PLATFORMS)


def test_the_image_is_made_by_what_is_there() -> None:
    steps = re.sub(r"\\\n", "", (ROOT / "Containerfile").read_text())
    words = [line.split(None, 1) for line in steps.splitlines() if line[:1].isupper()]
    assert words[0][0] == "FROM"
    assert ["USER", "closlab"] in words  # an ordinary one
    assert json.loads(words[-1][1]) == ["./closlab", "demo"]
    (home,) = (rest for word, rest in words if word == "WORKDIR")
    assert any(word == "ENV" and f"PATH={home}/.venv/bin:" in rest for word, rest in words)
    assert (ROOT / "closlab").exists()


def test_the_development_container_is_that_image_and_runs_the_demo() -> None:
    there = ROOT / ".devcontainer"
    said = json.loads((there / "devcontainer.json").read_text())
    assert (there / said["build"]["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert (there / said["build"]["context"]).resolve() == ROOT
    assert f"USER {said['remoteUser']}\n" in (ROOT / "Containerfile").read_text()
    assert shlex.split(said["postAttachCommand"]) == ["./closlab", "demo"]


@pytest.fixture(scope="module")
def released(zig: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [name for name in ("build", "wheel") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not here: .venv/bin/pip install -r requirements-release.lock")
    out = tmp_path_factory.mktemp("released")
    wheels.make(out / "once")
    wheels.make(out / "again")
    return out


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_makings_give_the_same_wheels(released: Path) -> None:
    once, again = (
        {path.name: path.read_bytes() for path in (released / name).glob("*.whl")}
        for name in ("once", "again")
    )
    assert once == again
    assert len(once) == 1 + len(PLATFORMS)
    for line in (released / "once" / SUMS).read_text().splitlines():
        said, name = line.split("  ")
        assert hashlib.sha256((released / "once" / name).read_bytes()).hexdigest() == said


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_compiled_tells_where_that_was_done(released: Path) -> None:
    places = {str(ROOT), str(Path.home()), os.path.realpath(sys.prefix), str(released.parent)}
    for wheel in (released / "once").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in filter(re.compile("switch/built/").match, archive.namelist()):
                held = archive.read(name)
                assert not [place for place in places if f"{place}/".encode() in held], name


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_wheel_installed_by_pip_runs_without_a_compiler(released: Path, tmp_path: Path) -> None:
    """With whatever versions of other packages the index has today."""
    aim = target.of_this_machine()
    if aim is None:
        pytest.skip("there is no wheel for such a machine")
    (wheel,) = (released / "once").glob(f"*{PLATFORMS[aim.name]}.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv" / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*map(str, pip), str(wheel)], check=True)
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "closlab", "demo", "--out", "demo"],
        cwd=tmp_path / "home", env={"HOME": str(tmp_path / "home"), "PATH": "/nowhere"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "packets dropped" in done.stderr and "no C compiler" in done.stderr
