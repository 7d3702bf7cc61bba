"""What a name leads to that somebody gives: a file's content, or one line on what is there."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from files import FileError, NoFileError, parse_json, read_bytes, read_json, read_text
from tests.imports import ROOT, modules

MAX = 1000


def test_what_is_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "there").symlink_to("fifo")
    (tmp_path / "long").write_bytes(bytes(MAX + 1))
    (tmp_path / "latin").write_bytes(b"gr\xfc\xdfe")
    (tmp_path / "deep").write_text("[" * 500)
    (tmp_path / "socket").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        listener.bind("listener")
    for name, expected in (
        ("fifo", "is no file but a pipe"),
        ("there", "is no file but a pipe"),
        ("round", "cannot be read: Too many levels of symbolic links"),
        (".", "is no file but a folder"),
        ("listener", "cannot be read: No such device or address"),
        ("/dev/zero", "is no file but a device"),
        ("/dev/null", "is no file but a device"),
        ("/dev/tty", "/dev/tty "),
        ("/proc/self/mem", "cannot be read: Input/output error"),
        ("long", "is too long: it may have 1,000 bytes"),
        ("latin", "is no text"),
        ("a\0b", "cannot be read: embedded null"),
        ("\ud800", "cannot be read"),
    ):
        with pytest.raises(FileError, match=expected):
            read_text(Path(name), MAX)
    for name in ("nowhere", "long/er", "x" * 300, "x/" * 5000):
        with pytest.raises(NoFileError) as error:
            read_bytes(Path(name), MAX)
        assert len(str(error.value)) < 250
    with pytest.raises(FileError, match="is not JSON"):
        read_json(Path("deep"), MAX)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_a_file_of_the_most_bytes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MAX)
    assert read_bytes(file, MAX) == b"x" * MAX
    assert read_text("/proc/self/comm", MAX)  # whose size is said to be 0


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
@pytest.mark.parametrize("length", [3, MAX + 1])
def test_a_pipe_that_is_open_already_is_read(name: str, length: int) -> None:
    words = f"import files; print(len(files.read_bytes({name!r}, {MAX})))"
    done = subprocess.run(
        [sys.executable, "-c", words],
        input=b"x" * length, capture_output=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.stdout == b"3\n") if length == 3 else (b"is too long" in done.stderr)


def test_readers_of_what_is_named_open_nothing_themselves() -> None:
    readers = [
        name for name in modules()
        if name.startswith(("compiler", "topologies", "traffic.traces", "traffic.jobs",
                            "lab.scenario", "views.report.kept", "switch.stf", "switch.host",
                            "switch.p4runtime", "switch.read"))
    ]  # fmt: skip
    allowed = {"lab.scenario.keys", "topologies.offload"}  # their own sources, the kernel's
    for name in {*readers} - allowed:
        text = modules()[name].read_text()
        for call in (".read_text(", ".read_bytes(", '.open("r', ".open()", "json.load("):
            assert call not in text, (name, call)
