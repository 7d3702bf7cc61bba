"""What a process leaves when it is killed, seen to by a shell that outlives it.

A kill -9 gives nobody a chance to tidy up. So a shell waits at the end of a pipe for its owner to
be gone, whatever the way, and then carries out what it was told: ends processes, removes a folder.
"""

from __future__ import annotations

import atexit
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

_WAITS = 'trap "" HUP INT TERM; while read -r line; do todo="$todo$line;"; done; eval "$todo"'

# Again and again: others who worked there for its owner may end later than he did.
_REMOVES = 'for each in 0 0 1 1 2 4; do sleep $each; rm -rf "$0"; done'


@contextmanager
def at_our_end() -> Iterator[Executor]:
    """Have commands carried out if this process is killed while the context lasts."""
    with subprocess.Popen(
        ["sh", "-c", _WAITS],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    ) as shell:
        try:
            yield Executor(shell)
        finally:
            shell.kill()


class Executor:
    """Who does it."""

    def __init__(self, shell: subprocess.Popen[bytes]) -> None:
        self._shell = shell

    def then(self, *words: str) -> None:
        """One more command."""
        assert self._shell.stdin is not None
        with suppress(BrokenPipeError):  # killed itself, it is of no use, and no harm
            self._shell.stdin.write(f"{shlex.join(words)}\n".encode())


@contextmanager
def gone_at_our_end(folder: Path) -> Iterator[None]:
    """Have a folder removed if this process is killed while the context lasts."""
    with at_our_end() as executor:
        executor.then("sh", "-c", _REMOVES, str(folder))
        yield


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for as long as the context lasts, or this process."""
    folder = Path(tempfile.gettempdir(), f"closlab-{secrets.token_hex(6)}")
    with gone_at_our_end(folder):  # from before it is there until after it is gone
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def kept_by_us() -> tempfile.TemporaryDirectory[str]:
    """A folder for as long as somebody holds what is returned, or this process lasts."""
    folder = tempfile.TemporaryDirectory(prefix="closlab-")
    _our_end().then("sh", "-c", _REMOVES, folder.name)
    return folder


@cache
def _our_end() -> Executor:
    """One for all folders of this process; one that ends by itself has tidied up."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(at_our_end())
