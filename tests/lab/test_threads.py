"""A thread that has no memory to begin is an error, and none waits for it for ever."""

import subprocess
import sys

import pytest

from lab.machine.paths import ROOT

# A thread whose first steps find no memory: CPython calls _bootstrap, which fails as it would then.
SCRIPT = """
import threading
from lab.machine.threads import mind_threads

mind_threads()
ran = []
threading.Thread(target=ran.append, args=(1,)).start()

class Poor(threading.Thread):
    def _bootstrap(self):
        return None  # without a word

try:
    Poor().start()
except MemoryError as error:
    print(error)
first = threading.Thread(target=ran.append, args=(2,))
first.start()
first.join()
try:
    first.start()
except RuntimeError as error:
    print(error)
others = [threading.Thread(target=ran.append, args=(n,)) for n in range(20)]
for each in others:
    each.start()
for each in others:
    each.join()
print(len(ran))
"""


def test_who_starts_it_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n") == [
        "a thread had no memory to begin", "threads can only be started once", "22", "",
    ], done.stderr  # fmt: skip


@pytest.mark.slow
def test_at_any_limit_of_memory_a_run_comes_to_an_end() -> None:
    """With a message or a result: a sweep over limits that its threads may or may not fit in."""
    for limit_kb in range(200_000, 700_000, 10_000):
        command = f"ulimit -v {limit_kb}; exec {sys.executable} -m lab.start run hello --engine sim"
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, (limit_kb, done.stderr)
