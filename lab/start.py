"""Where ``closlab`` begins: who interrupts it while it is being read ends it in silence."""

from __future__ import annotations

import gc
import signal


def main() -> None:
    """Read the command line's code, and run it."""
    told = signal.getsignal(signal.SIGINT)
    if told is signal.default_int_handler:  # else it was started so as not to hear of it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # until all is read: code stays, there is no garbage in it
    from lab import cli

    signal.signal(signal.SIGINT, told)
    cli.main()
