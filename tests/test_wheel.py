"""The wheel: whole, and a lab wherever it is installed."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.imports import TOPS

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = (
    *({*TOPS} - {"closlab"}),
    *("p4src", "scenarios", "exercises", "closlab-stubs"),
)


def files_in(folder: Path) -> set[str]:
    """What lies there, but for what Python makes of it."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_is_said_to_be_part_of_it() -> None:
    """So that a wheel has it: nights build one."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages, kinds = tool["packages"]["find"]["include"], tool["package-data"]["*"]
    for name in INSTALLED:
        for file in map(Path, files_in(ROOT / name)):
            package = ".".join((name, *file.parent.parts))
            assert any(fnmatch(package, each) for each in packages), package
            assert any(fnmatch(file.name, kind) for kind in ("*.py", *kinds)), f"{name}/{file}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as builds leave folders behind."""
    tree = tmp_path_factory.mktemp("tree")
    for name in INSTALLED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "closlab.py"):
        shutil.copy(ROOT / name, tree / name)
    made = tmp_path_factory.mktemp("wheel")
    words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", made, tree)
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (found,) = made.glob("*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_holds_all_that_the_folders_do(wheel: Path) -> None:
    """Whatever the code reads lies in one of these folders."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    there = {f"{name}/{file}" for name in INSTALLED for file in files_in(ROOT / name)}
    there.add("closlab.py")
    assert held == there
    assert {"p4src/fabric.p4", "switch/rt/sw.c", "traffic/core/host_main.c"} <= held


@pytest.mark.slow
def test_it_runs_a_scenario_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    """All of the code is the wheel's, and what a run leaves is where it was called."""
    site, here = tmp_path / "site", tmp_path / "here"
    here.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    before = files_in(site)
    said = run_incast(
        [sys.executable, "-c", "import lab; print(lab.__file__); from lab.cli import main; main()"],
        here,
        {**os.environ, "PYTHONPATH": str(site)},
    )
    assert said.startswith(str(site))
    assert files_in(site) == before


@pytest.mark.slow
def test_it_is_installed_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """What it needs comes from the package index; what it builds is kept at home."""
    environment, here, home = (tmp_path / name for name in ("environment", "here", "home"))
    here.mkdir()
    home.mkdir()
    venv.create(environment, with_pip=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    words = [*pip, "--constraint", ROOT / "requirements.lock", wheel]
    subprocess.run([*map(str, words)], check=True)
    before = files_in(environment)
    clean = {"PATH": os.environ["PATH"], "HOME": str(home)}
    run_incast([str(environment / "bin" / "closlab")], here, clean)
    assert files_in(environment) == before
    assert list((home / ".cache" / "closlab").glob("p4-*.so"))


def run_incast(closlab: list[str], here: Path, environment: dict[str, str]) -> str:
    """Run a scenario from an empty folder; what is said on standard output."""
    words = [*closlab, "run", "incast", "--engine", "sim"]
    done = subprocess.run(
        words, cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "7 of 7 messages arrived whole" in done.stderr
    assert [path.name for path in here.iterdir()] == ["runs"]
    (run,) = (here / "runs").iterdir()
    assert {"result.json", "report.html", "flows.csv"} <= files_in(run)
    return done.stdout
