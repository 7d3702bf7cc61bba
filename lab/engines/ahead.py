"""What no program can change, built ahead: `python -m lab.engines.ahead`, which set-up calls.

The switch's run-time, the simulator and the hosts' adapters. Who changes the fabric program then
waits for that only. What cannot be built now is not missed before it is wanted, and told then.
"""

from __future__ import annotations

from contextlib import suppress

from lab.engines.sim import native
from lab.errors import LabError
from lab.machine import native_host


def main() -> None:
    """Build all of it, or as much as can be, and say what is there: set-up counts that."""
    parts = (
        native.library,  # and with it the run-time
        native_host.endpoint_program,
        native_host.nic_program,
        native_host.stretch_library,
    )
    with suppress(LabError):
        for part in parts:
            part()
            print(f"built {part.__name__}", flush=True)


if __name__ == "__main__":
    main()
