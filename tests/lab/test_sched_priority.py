"""Who emulates a fabric comes before others, by session where the kernel groups processes so."""

import os
import subprocess
from pathlib import Path

import pytest

from lab.machine.sched_priority import lend_sched_priority

SETTING = Path("/proc/sys/kernel/sched_autogroup_enabled")


def group_of(pid: int) -> str:
    return Path(f"/proc/{pid}/autogroup").read_text().strip()


@pytest.mark.skipif(not SETTING.exists(), reason="this kernel does not group by session")
def test_a_session_comes_before_others_if_it_may_and_ours_stays_as_it_was() -> None:
    ours = group_of(os.getpid())
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        try:
            before = group_of(process.pid)
            lend_sched_priority(process.pid)
            wanted = before.replace("nice 0", "nice -20") if os.geteuid() == 0 else before
            assert group_of(process.pid) == wanted
        finally:
            process.kill()
    assert group_of(os.getpid()) == ours


def test_who_is_gone_is_lent_nothing() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        pass
    lend_sched_priority(process.pid)
