"""What those who carry on are given: the hook and the workflows do what they are there for."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


# --- the hook ------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with our settings and hook, and next to no code."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    modules = SETTINGS["tool"]["mypy"].get("modules", [])
    for module in modules:
        (folder / f"{module}.py").write_text('"""Nothing."""\n')
    for package in SETTINGS["tool"]["mypy"]["packages"]:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text('"""Nothing."""\n')
    (folder / ".venv").symlink_to(Path(os.environ.get("VIRTUAL_ENV", ROOT / ".venv")))
    (folder / ".gitignore").write_text(".venv\n.mypy_cache/\n")
    git(folder, "init", "--quiet")
    git(folder, "config", "core.hooksPath", str(ROOT / ".githooks"))
    git(folder, "config", "user.name", "nobody")
    git(folder, "config", "user.email", "nobody@example.org")
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def commit(folder: Path) -> str:
    """What the hook has against what is staged; nothing: it is committed."""
    done = subprocess.run(
        ["git", "commit", "--quiet", "--message", "A change"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (done.stdout + done.stderr == "")
    return done.stdout + done.stderr


def test_the_hook_looks_at_what_is_staged(checkout: Path) -> None:
    place = checkout / "lab" / "new.py"
    for text, complaint in (
        ('"""New."""\nLEFT  = 1\n', "new.py"),  # unformatted
        ('"""New."""\n\nimport os\n', "F401"),
        ('"""New."""\n\nleft: int = "1"\n', "Incompatible types"),
    ):
        place.write_text(text)
        git(checkout, "add", "--all")
        assert complaint in commit(checkout)
    place.write_text('"""New."""\n\nleft = 1\n')
    git(checkout, "add", "--all")
    place.write_text("and on it goes, unstaged")
    assert commit(checkout) == ""


# --- the workflows -------------------------------------------------------------------------------


def jobs() -> list[dict[str, object]]:
    """Of those that test; how a release is made is told nobody but the workflow that does it."""
    testing = (path for path in WORKFLOWS if path.stem not in ("release", "wheels"))
    return [job for path in testing for job in yaml.safe_load(path.read_text())["jobs"].values()]


def commands() -> list[str]:
    steps = (step for job in jobs() for step in job.get("steps", ()))  # type: ignore[attr-defined]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def test_workflows_run_what_people_are_told_to_run() -> None:
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    assert "./closlab test" in commands()
    for command in commands():
        assert re.search(rf"(^|`){re.escape(command)}($|`)", text, re.MULTILINE), command


def test_workflows_know_all_pythons_and_both_kinds_of_machine() -> None:
    (matrix,) = (
        job["strategy"]["matrix"]
        for path in WORKFLOWS
        if path.stem == "test"
        for job in yaml.safe_load(path.read_text())["jobs"].values()
    )
    launcher = (ROOT / "closlab").read_text()
    least, beyond = re.findall(r"3\.(\d+)", SETTINGS["project"]["requires-python"])
    assert matrix["python"] == [f"3.{minor}" for minor in range(int(least), int(beyond))]
    assert all(f"python{version}" in launcher for version in matrix["python"])
    assert [machine.endswith("-arm") for machine in matrix["machine"]] == [False, True]


def test_workflows_name_no_place_to_fetch_packages_from() -> None:
    for path in WORKFLOWS:
        assert not re.search(r"://|index|registry", path.read_text())
