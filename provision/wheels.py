"""What is released: python -m provision.wheels OUT [TARGET...]

Into OUT go the sources, a wheel without anything compiled, which any machine with a C compiler can
use, for each target (`switch/target.py`) one with all that a simulation of the stock program needs,
and SHA256SUMS. Taken is what git knows of this tree. Two makings of one commit give the same bytes
of every wheel: times are the commit's, and what is compiled tells nothing of where that was done.

It takes what requirements-release.lock and requirements-browser.lock list.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# By what name packages of Python's know a target, with the least of its system that is needed.
PLATFORMS = {
    "x86_64-linux": "manylinux_2_28_x86_64",
    "aarch64-linux": "manylinux_2_28_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}
SUMS = "SHA256SUMS"


def make(out: Path, targets: Sequence[str] = (*PLATFORMS,), cache: Path | None = None) -> None:
    """Make all of it; a cache that is given is used, instead of one that is empty."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as space:
        tree = _copied(Path(space) / "closlab")
        moment = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": moment.strip(), "PYTHONPATH": str(tree)}
        _python(["build", "--no-isolation", "--outdir", str(out), str(tree)], environment)
        (pure,) = out.glob("*-none-any.whl")
        for target in targets:
            built = {"XDG_CACHE_HOME": str(cache or space), "CLOSLAB_TARGET": target}
            parts = _python(["lab.engines.cross"], environment | built).split()
            unpacked = _unpacked(pure, Path(space) / target, environment)
            _add(unpacked, PLATFORMS[target], map(Path, parts))
            _python(["wheel", "pack", "--dest-dir", str(out), str(unpacked)], environment)
    made = sorted(path for path in out.iterdir() if path.name != SUMS)
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (out / SUMS).write_text("".join(sums))


def _copied(tree: Path) -> Path:
    for name in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        source, copy = ROOT / name, tree / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copy.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return tree


def _unpacked(wheel: Path, space: Path, environment: dict[str, str]) -> Path:
    _python(["wheel", "unpack", "--dest", str(space), str(wheel)], environment)
    (folder,) = space.iterdir()
    return folder


def _add(unpacked: Path, platform: str, parts: Iterator[Path]) -> None:
    """Put what was built where it is looked for, and say for whom the wheel is now."""
    (about,) = unpacked.glob("*.dist-info/WHEEL")
    said = about.read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    about.write_text(said.replace("py3-none-any", f"py3-none-{platform}"))
    folder = unpacked / "switch" / "built"
    folder.mkdir()
    for part in parts:
        shutil.copyfile(part, folder / part.name)
        (folder / part.name).chmod(0o644)


def _python(words: Sequence[str], environment: dict[str, str]) -> str:
    """Run a module; what it says goes to who called if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words[:2])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    os.umask(0o022)
    make(Path(sys.argv[1]).absolute(), sys.argv[2:] or (*PLATFORMS,))
