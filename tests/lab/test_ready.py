"""The process that tests fork their commands off: what it answers is never overlooked."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.lab.conftest import started
from tests.lab.ready import Ready
from tests.waiting import LONG_S


class _Late(Ready):
    """One whose command is over before anybody reads that it began."""

    def _answer(self) -> Any:
        time.sleep(1)
        return super()._answer()


def test_a_command_that_is_over_at_once_is_not_waited_for() -> None:
    late = _Late()
    for _ in range(2):
        done = late.run(["--version"], os.environ, Path.cwd(), timeout_s=60)
        assert done.returncode == 0
        assert "closlab" in done.stdout


def test_one_that_is_started_is_a_child_with_pipes_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    fails = started("explain", "no-such-word", cwd=tmp_path, **pipes)
    parent = Path(f"/proc/{fails.pid}/stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) == os.getpid()
    said, complaint = fails.communicate(timeout=LONG_S)
    assert (fails.returncode, said) == (1, "") and "no-such-word" in complaint
    lists = started("runs", cwd=tmp_path, **pipes)
    assert lists.communicate(timeout=LONG_S) == ("runs/ holds no runs.\n", "")
    assert lists.returncode == 0


def test_one_that_is_started_hears_of_signals_and_of_the_end_of_its_input() -> None:
    server = started("lsp", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.kill()
    assert server.wait(LONG_S) == -signal.SIGKILL
    server = started("lsp", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.communicate(b"", timeout=LONG_S)
    assert server.returncode == 1  # as who leaves without a word has it
