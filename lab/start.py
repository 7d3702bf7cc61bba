"""Where ``closlab`` begins: who interrupts it while it is being read ends it in silence."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from typing import Any, TextIO

from lab.errors import OUTPUTS
from lab.machine.threads import mind_threads

_UTF8 = "PYTHONUTF8"


def main() -> None:
    """Read the command line's code, and run it."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get(_UTF8) != "1":
        # What is read and written here is UTF-8, whatever letters this machine is set to.
        os.environ[_UTF8] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else it was started so as not to hear of it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout, sys.stderr = _named(sys.stdout), _named(sys.stderr)
    mind_threads()
    gc.disable()  # until all is read: code stays, there is no garbage in it
    from lab import cli

    signal.signal(signal.SIGINT, handler)
    cli.main()


class _Output(io.FileIO):
    """One of our own outputs; what cannot be written to it is told by its name, as of any file."""

    def write(self, data: Any, /) -> int:
        """Write some of it."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = OUTPUTS[self.fileno()]
            raise


def _named(stream: TextIO) -> TextIO:
    """The same output, that knows its name, and can tell of names that are no text."""
    if not isinstance(stream, io.TextIOWrapper) or stream.fileno() not in OUTPUTS:
        return stream
    raw = _Output(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),
        stream.encoding,
        "backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
