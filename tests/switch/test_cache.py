"""The cache: only what nobody else could have written is loaded, and who cannot keep anything hears
where and why."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.engines.mininet.running import running
from lab.errors import RunError
from lab.machine.paths import keep_bytecode
from switch import build, cache, program
from switch.cache import CacheError, cache_dir, kept
from switch.objects import Translation

from .interfaces import compiled_wire

ROOT = Path(__file__).parents[2]
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    yield folder
    folder.chmod(0o755)


def write(text: str) -> Path:
    return kept("thing", lambda path: path.write_text(text))


def test_what_is_kept_is_made_once() -> None:
    assert write("first").read_text() == "first"
    assert write("second").read_text() == "first"


def test_of_many_who_want_it_at_once_one_makes_it(base: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        time.sleep(0.1)
        made.append(path)
        path.write_text(str(len(made)))

    with ThreadPoolExecutor(8) as pool:
        found = {path.read_text() for path in pool.map(lambda _: kept("thing", make), range(8))}
    assert found == {"1"} and len(made) == 1
    assert [path.name for path in (base / "closlab").iterdir()] == ["thing"]


def test_who_fails_to_make_it_leaves_it_to_the_next() -> None:
    def fail(path: Path) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        kept("thing", fail)
    assert write("mine").read_text() == "mine"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_may_write_there_whatever_the_umask(umask: int, base: Path) -> None:
    before = os.umask(umask)
    try:
        thing = write("mine")
    finally:
        os.umask(before)
    assert not (base / "closlab").stat().st_mode & 0o022
    assert not thing.stat().st_mode & 0o022


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_what_others_could_have_written_is_made_anew(mode: int) -> None:
    thing = write("planted")
    thing.chmod(mode)
    assert write("mine").read_text() == "mine"


def test_a_folder_that_others_may_write_to_is_closed(base: Path) -> None:
    folder = base / "closlab"
    folder.mkdir()
    folder.chmod(0o777)
    write("mine")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_links_are_no_files_of_ones_own(base: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("planted")
    cache_dir()
    (base / "closlab" / "thing").symlink_to(tmp_path / "elsewhere")
    assert write("mine").read_text() == "mine"
    assert (tmp_path / "elsewhere").read_text() == "planted"


@as_root
def test_what_somebody_else_wrote_is_made_anew() -> None:
    thing = write("planted")
    os.chown(thing, NOBODY, NOBODY)
    assert write("mine").read_text() == "mine"


@as_root
def test_two_users_share_a_cache(base: Path) -> None:
    """Each has a folder, and neither is in the other's."""
    base.chmod(0o1777)
    (base / "closlab").mkdir()
    os.chown(base / "closlab", NOBODY, NOBODY)
    assert write("mine") == base / "closlab-2" / "thing"
    assert not list((base / "closlab").iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_cache_that_takes_nothing_is_named_with_the_cure(number: int, base: Path) -> None:
    def make(path: Path) -> None:
        raise OSError(number, os.strerror(number), str(path))

    with pytest.raises(CacheError) as caught:
        kept("thing", make)
    assert f"{base / 'closlab'}" in str(caught.value)
    assert os.strerror(number) in str(caught.value)
    assert "XDG_CACHE_HOME" in str(caught.value)
    assert not list((base / "closlab").iterdir())


def test_a_run_blames_the_cache_and_not_its_folder(base: Path, tmp_path: Path) -> None:
    (base / "closlab").write_text("in the way")
    command = [sys.executable, "-c", "from lab.cli import main; main()"]
    command += ["run", "hello", "--engine", "sim", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert f"{base / 'closlab'}, where what is built is kept, cannot be used" in done.stderr
    assert "--out" not in done.stderr
    assert "Traceback" not in done.stderr


def alike(one: Translation, other: Translation) -> bool:
    return (vars(one.objects), one.c_text) == (vars(other.objects), other.c_text)


def test_a_translation_that_was_kept_is_the_program(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(compiled_wire(tmp_path).json).encode()
    fresh = program._translate(text, "wire")
    monkeypatch.setattr(program, "_LARGE", 0)
    for _ in range(2):  # made, and found
        program._translated.cache_clear()
        assert alike(program._translated(text, "wire"), fresh)
        assert len(list((base / "closlab").glob("program-*.pickle"))) == 1
    program._translated.cache_clear()
    assert not alike(program._translated(text, "other"), fresh)  # it bears its name
    program._translated.cache_clear()


def test_programs_are_compiled_anew_for_new_headers_and_linked_anew_for_a_new_runtime(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(runtime: str, header: bytes) -> tuple[Path, int, int]:
        """A program's library, and what there is by now: compiled, and linked."""
        sources = {"a.h": header, "a.c": runtime.encode()}
        monkeypatch.setattr(build, "runtime_sources", lambda _: sources)
        monkeypatch.setattr(build, "runtime_library", lambda: empty(runtime))
        found = build.program_library("int sw_program;")
        compiled, linked = (
            len(list((base / "closlab").glob(f"p4-*.{kind}"))) for kind in ("o", "so")
        )
        return found, compiled, linked

    def empty(name: str) -> Path:
        source = tmp_path / "empty.c"
        source.write_text("")
        return build.compiled(f"{name}.so", [source])

    first, *counts = built("one", b"")
    assert counts == [1, 1]
    assert built("one", b"") == (first, 1, 1)
    second, *counts = built("two", b"")
    assert second != first and counts == [1, 2]
    assert built("two", b"// other")[1:] == (2, 3)


def named(word: str) -> str:
    """A name as what is built has one."""
    return f"{word}-{build.digest(word)}"


def used(word: str, hours_ago: float, size: int = 1 << 16) -> Path:
    """Something that is kept, and was last asked for so long ago."""
    thing = kept(named(word), lambda path: path.write_bytes(bytes(size)))
    os.utime(thing, (time.time() - 3600 * hours_ago,) * 2)
    return thing


def trim() -> None:
    cache._trim.cache_clear()
    kept(f"at {time.monotonic_ns()}", Path.touch)


def test_beyond_some_size_what_is_used_least_goes(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MAX_BYTES", 5 << 15)  # two and a half of these
    things = [used(name, hours) for name, hours in (("old", 9), ("older", 10), ("young", 3))]
    trim()
    assert [thing.exists() for thing in things] == [True, False, True]
    used("new", 0)
    assert kept(named("old"), Path.touch).stat().st_size  # it is asked for, so that now another is
    trim()
    assert [thing.exists() for thing in things] == [True, False, False]


def test_what_was_lately_used_stays_however_much_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_BYTES", 0)
    things = [used("one", 1.5), used("other", 0)]
    trim()
    assert all(thing.exists() for thing in things)


def test_what_a_killed_maker_leaves_is_found_and_that_of_others_let_be(base: Path) -> None:
    make = (
        "import sys, time; from switch.cache import kept\n"
        "def make(path):\n"
        "    path.with_name('half').touch(); print(flush=True); time.sleep(60)\n"
        "kept(sys.argv[1], make)"
    )
    makers = [
        subprocess.Popen([sys.executable, "-c", make, name], cwd=ROOT, stdout=subprocess.PIPE)
        for name in (named("dead"), named("alive"))
    ]
    try:
        for maker in makers:
            assert maker.stdout is not None
            maker.stdout.readline()
        makers[0].kill()
        makers[0].wait()
        for path in (base / "closlab").iterdir():
            os.utime(path, (0, 0))
        assert len(list((base / "closlab").iterdir())) == 4
        trim()
        names = {path.name for path in (base / "closlab").iterdir()}
        assert len([name for name in names if name.startswith("making-")]) == 1
        assert {name for name in names if name.endswith(".lock")} == {f"{named('alive')}.lock"}
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()


def belongings(folder: Path) -> list[Path]:
    """What somebody has in a folder for years, of whatever name."""
    names = ("important.lock", "making-album/photo", "making-films1/film", "sw.lock", "a.lock/b")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("dear")
        os.utime(folder / name, (0, 0))
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    return [folder / name for name in names]


def test_a_planted_link_is_not_followed(base: Path, tmp_path: Path) -> None:
    """To the folder of a victim, which stays as open as it is, and as full."""
    victim = tmp_path / "victim"
    victim.mkdir()
    things = belongings(victim)
    victim.chmod(0o777)
    base.chmod(0o777)
    (base / "closlab").symlink_to(victim)
    assert write("mine") == base / "closlab-2" / "thing"
    trim()
    assert victim.stat().st_mode & 0o777 == 0o777
    assert all(thing.read_text() == "dear" for thing in things)
    assert (base / "closlab").is_symlink()


def test_only_what_the_cache_made_is_removed(
    base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where it is in a folder that holds other things, or was put in its place."""
    monkeypatch.setattr(cache, "_MAX_BYTES", 0)
    things = belongings(cache_dir())
    (tmp_path / "film").write_text("dear")
    link = cache_dir() / f"{named('of')}.lock"
    link.symlink_to(tmp_path / "film")
    pipe = cache_dir() / f"{named('pipe')}.lock"
    os.mkfifo(pipe)
    os.utime(link, (0, 0), follow_symlinks=False)
    os.utime(pipe, (0, 0))
    trim()
    assert all(thing.read_text() == "dear" for thing in things)
    assert (tmp_path / "film").read_text() == "dear"


@as_root
def test_what_others_left_there_is_theirs(base: Path) -> None:
    lock = cache_dir() / f"{named('of')}.lock"
    lock.touch()
    os.chown(lock, NOBODY, NOBODY)
    os.utime(lock, (0, 0))
    trim()
    assert lock.exists()


def test_what_a_second_cache_has_is_not_made_again(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write("first")
    monkeypatch.setenv(cache.BESIDE_VARIABLE, str(first.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
    assert write("second") == first and cache.is_kept("thing")
    first.chmod(0o666)  # others could have written it
    assert write("second").read_text() == "second"
    assert first.read_text() == "first"


def test_what_another_has_made_meanwhile_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the same place."""
    looks = iter((False, True))
    monkeypatch.setattr(cache, "_is_own", lambda _path: next(looks))
    made = cache.kept("made-meanwhile", lambda _path: pytest.fail("it was made again"))
    assert made == cache.cache_dir() / "made-meanwhile"


def test_a_link_that_is_passed_over_is_told_once(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(cache._SAID, raising=False)
    (base / "closlab").symlink_to(tmp_path)
    for _ in range(2):
        cache._own_folder.cache_clear()
        assert cache_dir() == base / "closlab-2"
    note = f"closlab: {base / 'closlab'} is a link, which is not followed: the next name is taken\n"
    assert capsys.readouterr().err == note


def test_word_of_labs_is_not_left_beyond_a_link_and_no_folder_but_a_labs_is_swept(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A victim's folders went with a look for running labs."""
    monkeypatch.delenv("CLOSLAB_RUNNING", raising=False)
    victim = tmp_path / "victim"
    for name in ("thesis", "making-album", "two-12"):
        (victim / name).mkdir(parents=True)
        (victim / name / "page").write_text("dear")
        os.utime(victim / name, (0, 0))
    (cache_dir() / "labs").symlink_to(victim)
    with pytest.raises(RunError, match=r"labs, where running labs leave word, is a link"):
        running()
    monkeypatch.setenv("CLOSLAB_RUNNING", str(victim))
    assert running() == []
    assert sorted(each.name for each in victim.iterdir()) == ["making-album", "thesis"]


def test_bytecode_that_others_could_have_written_is_not_run(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    folder = cache_dir() / "bytecode"
    folder.mkdir()
    folder.chmod(0o777)
    keep_bytecode()
    assert sys.pycache_prefix is None
    folder.rmdir()
    keep_bytecode()
    assert sys.pycache_prefix == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
