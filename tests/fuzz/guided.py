"""Looks, by libFuzzer, for frames that reach what no frame before them has reached.

    python -m tests.fuzz.guided switch|endpoint SECONDS [PROCESSES]

Needs clang and its runtime (Debian: clang, libclang-rt-14-dev or later). What is found goes into
the corpus beside this file, of which each input adds something; what breaks a target stays in the
folder that is named, as a file that `--again FILE` plays once more.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from switch import build
from tests.fuzz.frames import SEEDS, corpus_of, keep, target

_CHILD = "CLOSLAB_FUZZ_CHILD"  # the command that starts a child: libFuzzer starts more of them
_FLAGS = (
    f"{build.CHECKED} -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
    " -fno-omit-frame-pointer"
)
_LONGEST = 800


def _clang(*arguments: str) -> str:
    done = subprocess.run(["clang", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _driver(folder: Path) -> Path:
    """libFuzzer as a library: preloaded, so that all that is instrumented finds its counters."""
    (archive,) = Path(_clang("-print-runtime-dir")).glob("libclang_rt.fuzzer_no_main-x86_64.a")
    empty = folder / "empty.c"
    empty.write_text("")
    made = folder / "libfuzzer.so"
    whole = ("-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive")
    _clang("-shared", "-fPIC", str(empty), *whole, "-lstdc++", "-lm", "-o", str(made))
    return made


def _environment(name: str, folder: Path) -> dict[str, str]:
    start = folder / "start"
    child = shlex.join((sys.executable, "-m", "tests.fuzz.guided", name))
    start.write_text(f'#!/bin/sh\nexec {child} "$@"\n')
    start.chmod(0o755)
    sanitizer = Path(_clang("-print-runtime-dir")) / "libclang_rt.asan-x86_64.so"
    return os.environ | {
        "CC": "clang",
        "CLOSLAB_CFLAGS": _FLAGS,
        "LD_PRELOAD": f"{_driver(folder)} {sanitizer}",
        # Python keeps much until it ends, and libFuzzer has to come before the sanitizer.
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        _CHILD: str(start),
    }


def _drive(name: str, options: list[str]) -> None:
    """In the child: libFuzzer's loop, which ends the process."""
    library, made = target(name)
    words = [os.environ[_CHILD].encode(), *(option.encode() for option in options)]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    count, at = ctypes.c_int(len(words)), ctypes.cast(arguments, ctypes.c_void_p)
    ctypes.CDLL(None).LLVMFuzzerRunDriver(
        ctypes.byref(count), ctypes.byref(at), ctypes.cast(library.fuzz, ctypes.c_void_p)
    )
    del made


def fuzz(name: str, seconds: int, processes: int = 1) -> int:
    """Look for so long; how libFuzzer ended."""
    found = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    corpus, least = found / "corpus", found / "least"
    for folder in (corpus, least):
        folder.mkdir()
    for number, data in enumerate((*corpus_of(name), *SEEDS[name]())):
        (corpus / str(number)).write_bytes(data)
    environment = _environment(name, found)
    command = (environment[_CHILD],)
    # Whoever uses all memory, or does not come back, is found too. That goes by the wall's clock: a
    # machine that stood still for twenty seconds has been taken for a switch that did.
    limits = (f"-max_len={_LONGEST}", "-timeout=120", "-rss_limit_mb=4096")
    jobs = (f"-fork={processes}",) if processes > 1 else ()
    look = (*command, f"-max_total_time={seconds}", *limits, *jobs, "-print_final_stats=1",
            f"-artifact_prefix={found}/", str(corpus))  # fmt: skip
    print(shlex.join(look), f"(in {found})", flush=True)
    code = subprocess.run(look, env=environment, check=False).returncode
    if code:
        print(f"what broke it is in {found}", file=sys.stderr)
        return code
    subprocess.run(
        [*command, "-merge=1", *limits, str(least), str(corpus)],
        env=environment, check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    keep(name, [path.read_bytes() for path in least.iterdir()])
    print(f"{len(corpus_of(name))} inputs kept")
    return 0


def main(argv: list[str]) -> int:
    """What the command line asks for."""
    if os.environ.get(_CHILD):
        _drive(argv[0], argv[1:])
        return 0
    if argv[1] == "--again":
        with tempfile.TemporaryDirectory() as folder:
            environment = _environment(argv[0], Path(folder))
            again = [environment[_CHILD], argv[2]]
            return subprocess.run(again, env=environment, check=False).returncode
    return fuzz(argv[0], int(argv[1]), int(argv[2]) if len(argv) > 2 else 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
