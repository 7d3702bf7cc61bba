"""The process that tests fork their commands off: what it answers is never overlooked."""

import os
import time
from pathlib import Path
from typing import Any

from tests.lab.ready import Ready


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
