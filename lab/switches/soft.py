"""Our own switches: all of them in one process, whose ports are as fast and far as cables say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from controller import LinkSpec
from lab import program
from lab.errors import RunError
from lab.processes import last_line, line_of, stop
from lab.program import BuiltProgram
from lab.switches.base import Setting, Switches
from lab.watch import cells_of

_START_S = 30.0
_LEAST_INTERVAL_S = 0.02
_RECORD_S = 0.01  # fifty times what recording a switch takes
_UNLIMITED_PACKETS, _UNLIMITED_BYTES = 1 << 20, 1 << 30  # the program's own limits are the limits


class SoftSwitches(Switches):
    """The process that hosts all switches."""

    PACKETS_PER_S = 6_000

    @staticmethod
    def build_program(out: Path) -> BuiltProgram:
        """Compiled, and built as native code."""
        return program.build(out)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._log = setting.logs / "switches.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start the process."""
        setting = self.setting
        config = setting.logs.parent / "switches.json"
        config.write_text(
            json.dumps(
                [
                    {
                        "name": target.name,
                        "device_id": target.device_id,
                        "grpc_address": target.address,
                        "seed": setting.seed_of(switch),
                        "ports": setting.interfaces(switch),
                        "links": {
                            port: _link(setting.cable(switch, port))
                            for port in setting.fabric.ports(switch)
                        }
                        if setting.cable
                        else {},
                        "pcap": str(setting.pcaps) if setting.pcaps else None,
                        "record": cells_of(setting.fabric, switch),
                    }
                    for target, switch in zip(self.targets, setting.fabric.switches, strict=True)
                ],
                indent=1,
            )
        )
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "switch.host", config),
                *("--dilation", str(setting.dilation)),
                *("--record", self.watch.path, "--record-every", str(self._interval_s)),
            ],
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            start_new_session=True,  # Ctrl-C at the prompt is not meant for the switches
        )
        assert self._process.stdout is not None
        if line_of(self._process.stdout, _START_S) != "ready":
            raise RunError(
                f"the switches did not start: {last_line(self._log)}", self.where_they_speak()
            )
        return f"{len(self.targets)} in one process"

    @property
    def _interval_s(self) -> float:
        """The time between two records of what switches hold."""
        return max(_LEAST_INTERVAL_S, _RECORD_S * len(self.targets))

    def furnish(self) -> None:
        """Nothing: the process was told all when it started."""

    def check(self) -> None:
        """Fail if the process is gone."""
        if self._process is not None and self._process.poll() is not None:
            raise RunError(f"the switches died: {last_line(self._log)}", self.where_they_speak())

    def where_they_speak(self) -> str:
        """Their log."""
        return f"All they said is in {self._log}"

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            stop(self._process)


def _link(cable: LinkSpec) -> dict[str, int]:
    """A port's link as the switches' configuration has it; its queues as deep as may be needed."""
    return {
        "rate_bps": cable.rate_bps,
        "delay_ns": cable.delay_ns,
        "queue_packets": _UNLIMITED_PACKETS,
        "queue_bytes": _UNLIMITED_BYTES,
    }
