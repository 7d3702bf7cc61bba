"""What a call of an algorithm for PCM costs, beside the same control built in.

python -m tests.lab.pcm_cost
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.machine.algorithm import FOLDER, built
from switch import build


def main() -> None:
    """Compile it and say so."""
    folder = FOLDER.parent
    sources = [Path(__file__).with_suffix(".c"), *sorted(folder.glob("*.c"))]
    words = ["-I", str(folder), "-ldl", "-lm"]
    texts = [path.read_bytes() for path in (*sources, *sorted(folder.rglob("*.h")))]
    name = f"pcm-cost-{build.digest(build.compiler_id(), *words, *texts)}"
    program = build.compiled(name, sources, words, ["-std=gnu11", "-O2", "-ffp-contract=off"])
    subprocess.run([program, built("swift.c"), built("timely.c")], check=True)


if __name__ == "__main__":
    main()
