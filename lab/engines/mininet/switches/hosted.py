"""The process that hosts switches of ours (`switch.host`), as a run sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from controller import LinkSpec
from lab.errors import RunError
from lab.machine.memory import FREE_AT_ONCE
from lab.machine.patience import Patience, Still
from lab.machine.processes import last_line, line_of, say, stop
from lab.machine.sched_priority import lend_sched_priority
from lab.machine.supervisor import supervisor
from lab.scenario.faults import Spoil

_UNLIMITED_PACKETS, _UNLIMITED_BYTES = 1 << 20, 1 << 30  # the program's own limits are the limits


class Hosted:
    """Switches in one process."""

    def __init__(self, what: str, folder: Path, still: Still) -> None:
        self._what = what
        self._still = partial(still, f"the {what} to start")
        self._config = folder / f"{what}.json"
        self._log = folder / "logs" / f"{what}.log"
        self._process: subprocess.Popen[str] | None = None

    def start(
        self,
        switches: Sequence[Mapping[str, Any]],
        dilation: int,
        words: Sequence[str] = (),
        files: Sequence[int] = (),
    ) -> None:
        """Start it, and wait until every switch listens."""
        self._config.write_text(json.dumps(switches, indent=1))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "switch.host", self._config),
                    *("--dilation", str(dilation), "--links-change", *words),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | FREE_AT_ONCE,
                start_new_session=True,  # Ctrl-C at the prompt is not meant for the switches
                pass_fds=files,
            )
        lend_sched_priority(self._process.pid)
        supervisor.know(self._process.pid, f"the process of the {self._what}")
        assert self._process.stdout is not None
        if (
            line_of(self._process.stdout, Patience([self._process.pid], tell=self._still))
            != "ready"
        ):
            raise RunError(
                f"the {self._what} did not start: {last_line(self._log)}", self.where_it_speaks()
            )
        supervisor.rely(self._process.pid, f"the process of the {self._what}")

    def set_link(self, switch: str, port: int, cable: LinkSpec) -> None:
        """Give a port of one of them another link."""
        self._tell({"switch": switch, "port": port, "link": link_of(cable)})

    def spoil(self, switch: str, port: int, sends: bool, news: Spoil) -> None:
        """Let the cable at a port spoil frames."""
        cable = {"sends": sends, "late_ns": news.late_ns, **news.chances}
        self._tell({"switch": switch, "port": port, "cable": cable})

    def restart(self, switch: str) -> None:
        """Let one of them start again, with empty tables."""
        self._tell({"switch": switch, "restart": True})

    def _tell(self, what: Mapping[str, object]) -> None:
        assert self._process is not None
        say(self._process, json.dumps(what))

    def books(self) -> dict[str, Any]:
        """What the process says became of every packet, by switch."""
        self.check()
        assert self._process is not None
        assert self._process.stdout is not None
        self._tell({"tell": "books"})
        answer = line_of(self._process.stdout, Patience([self._process.pid]), self.check)
        if not answer:
            raise RunError(f"the {self._what} did not tell their books", self.where_it_speaks())
        found: dict[str, Any] = json.loads(answer)
        return found

    def check(self) -> None:
        """Fail if the process is gone."""
        if self._process is not None and self._process.poll() is not None:
            raise RunError(f"the {self._what} died: {last_line(self._log)}", self.where_it_speaks())

    def where_it_speaks(self) -> str:
        """Its log."""
        return f"All they said is in {self._log}"

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            stop(self._process)


def link_of(cable: LinkSpec) -> dict[str, int]:
    """A port's link as the configuration has it; its queues as deep as may be needed."""
    return {
        "rate_bps": cable.rate_bps,
        "delay_ns": cable.delay_ns,
        "overhead_bytes": cable.overhead,
        "queue_packets": _UNLIMITED_PACKETS,
        "queue_bytes": _UNLIMITED_BYTES,
    }
