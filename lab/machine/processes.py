"""Processes that a run starts, listens to and ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lab.machine.patience import Patience

_STOP_S = 3.0
_LOOK_S = 0.2


def say(process: subprocess.Popen[str], line: str) -> None:
    """Hand a process a line; if it is gone, whoever waits for its answer will notice."""
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass


def stop(process: subprocess.Popen[Any]) -> None:
    """End a process, gently at first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def in_turn(commands: Iterable[Sequence[str]]) -> int:
    """Run one after another, whatever comes of them: 0, or the exit code of the first to fail.

    An interrupt ends the one that runs, and none comes after it.
    """
    codes = []
    for command in commands:
        with subprocess.Popen(command) as process:
            try:
                codes.append(process.wait())
            except KeyboardInterrupt:
                # A terminal told it as well, and it tells what it has; who told only us means it.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_S)
                stop(process)
                raise
    return next((code for code in codes if code), 0)


def line_of(stream: IO[str], patience: Patience, watch: Callable[[], None] = lambda: None) -> str:
    """The next line of a pipe, without its end; empty if it closes or patience is over.

    ``watch`` is called now and then and may raise, when waiting on has become pointless.
    """
    received = b""
    poll = select.poll()  # select() knows no descriptor above 1023
    poll.register(stream, select.POLLIN)
    while not received.endswith(b"\n") and not patience.is_over():
        if poll.poll(_LOOK_S * 1000):
            chunk = os.read(stream.fileno(), 1 << 16)
            if not chunk:
                return ""
            received += chunk
        else:
            watch()
    return received.decode().strip()


def last_line(log: Path) -> str:
    """What a process said last."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
