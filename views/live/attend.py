"""A process that serves the page of a lab on Mininet, outside of the lab's sandbox.

`closlab run --live` starts it beside a run, which it waits for; it dies with who started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lab.engines.mininet.running import RunningLab, running
from lab.errors import LabError
from lab.machine.processes import die_with_parent
from views.live.server import serving
from views.live.tail import Tail, must_tell

_POLL_S = 0.2


def attend(lab: RunningLab, port: int, gnmi_port: int | None) -> None:
    """Serve its page until it is gone, or Ctrl-C."""
    tail = Tail(must_tell(lab))
    with serving(tail.hub, port, gnmi_port) as address, suppress(KeyboardInterrupt):
        print(f"{lab.name}, to be watched:  {address}", file=sys.stderr, flush=True)
        tail.follow(threading.Event())
        time.sleep(_POLL_S)  # until pages were told that it is over


@contextmanager
def attended(name: str, port: int, gnmi_port: int | None) -> Iterator[None]:
    """Have a lab of that name attended once it is up, for as long as the context lasts."""
    ports = str(port), "" if gnmi_port is None else str(gnmi_port)
    words = (sys.executable, "-m", "views.live.attend", name, *ports, str(os.getpid()))
    process = subprocess.Popen(words, start_new_session=True)  # Ctrl-C is the run's
    try:
        yield
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        process.kill()
        process.wait()


def main(name: str, port: str, gnmi_port: str, parent: str) -> int:
    """Wait for a lab, and attend it."""
    die_with_parent()
    while os.getppid() == int(parent):
        found = [lab for lab in running() if lab.name == name]
        if found:
            try:
                attend(found[0], int(port), int(gnmi_port) if gnmi_port else None)
            except LabError as error:
                error.show()
                return 1
            return 0
        time.sleep(_POLL_S)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
