"""Algorithms that mean no good, by lot: `python -m tests.lab.wild --seed N --count N` runs them.

Each is one kind of harm, in one of several forms, after some calls that are tame. It has to end its
run with a message that names it, and the process goes on to the next.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from lab.errors import ScenarioError
from lab.machine.algorithm import ENDS


class Wild(NamedTuple):
    """One of them: its C, and how it may end."""

    kind: str
    text: str
    ends: tuple[str, ...]


_GAVE_UP, _ENDLESS, _READ, _WROTE, _STACK, _RETURN, _DIVISION, _ASSERTED, _NOWHERE = ENDS[1:]
_BEYOND = ("1 << 20", "-(1L << 30)", "600", "1L << 45", "-3000")
# By kind: what it does (@ a place, # a number), what stands before, and how that may end.
KINDS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "endless": (
        (
            "while (1) ;", "for (;;) set_var(KEPT, 1);", "do { x++; } while (x | 1);",
            "for (volatile pcm_uint i = 0; i < 1ULL << 60; i++) ;",
            "again: x += #; goto again;",
        ),
        "", (_ENDLESS, "has no end"),
    ),
    "reads": (
        (
            "x = *(volatile pcm_uint *)#;", "x = ((volatile pcm_uint *)snapshot)[@];",
            "x = *(volatile char *)(snapshot + (@));", "x = get_arr_uint(TABLE, x + (@));",
            "x = *(volatile int *)-#;",
        ),
        "", (_READ,),
    ),
    "writes": (
        (
            "*(volatile pcm_uint *)# = x;", "((volatile pcm_uint *)snapshot)[@] = #;",
            "*(volatile char *)(snapshot + (@)) = 1;", "set_arr_uint(TABLE, x + (@), #);",
            "snapshot[-1 - # % 5] = #;", "*(volatile short *)algorithm_at = #;",
            "((volatile pcm_float *)pcm_way())[# % 4] = 0;",
        ),
        "int __algorithm_main(ALGO_CTX_ARGS);\n#define algorithm_at (&__algorithm_main)\n",
        (_WROTE,),
    ),
    "sweeps": (
        (
            "for (pcm_uint i = 0;; i++) snapshot[i] = #;",
            "for (volatile pcm_uint *p = snapshot;; p--) *p = #;",
            "for (volatile char *p = (volatile char *)&p;; p++) *p = #;",
            "memset(snapshot, #, #000000);", "memmove(snapshot + 1, snapshot, #00000);",
            "pcm_uint a[4]; for (volatile int i = 0;; i++) { a[i] = #; x += a[i & 3]; }",
        ),
        "#include <string.h>\n", (_WROTE, _READ, _RETURN, _ENDLESS),
    ),
    "recursion": (
        ("x = deeper(snapshot, x);",),
        "static __attribute__((noinline)) pcm_uint deeper(pcm_uint *s, pcm_uint x)\n"
        "{ volatile pcm_uint a[#]; a[x % #] = x; return deeper(s, x + 1) + a[x % #]; }\n",
        (_STACK,),
    ),
    "returns": (
        ("back(snapshot);",),
        "static __attribute__((noinline)) void back(pcm_uint *s)\n"
        "{ volatile pcm_uint a[2]; for (volatile int i = 0; i < #; i++) a[i] = s[3]; }\n",
        (_RETURN, _WROTE, _READ, _ENDLESS),
    ),
    "division": (
        (
            "x = # / (x - x);", "x = # % (x & 0);", "y = y / (y - y);",
            "y = INT64_MIN / (y * 0 - 1);",
        ),
        "", (_DIVISION,),
    ),
    "asserts": (
        ("assert(x == x + 1);", "assert(!snapshot);"), "#include <assert.h>\n", (_ASSERTED,),
    ),
    "gives up": (("return PCM_ERROR;", "return #;"), "", (_GAVE_UP,)),
    "unreachable": (("if (x < 1ULL << 63) __builtin_unreachable();",), "", (_NOWHERE,)),
}  # fmt: skip


def drawn(seed: int) -> Wild:
    """A seed's, always the same one."""
    lot = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    forms, before, ends = KINDS[kind]
    form = lot.choice(forms)
    for sign, choice in (
        ("@", lambda: lot.choice(_BEYOND)),
        ("#", lambda: str(lot.randint(3, 900))),
    ):
        while sign in form:
            form = form.replace(sign, choice(), 1)
    number = str(lot.randint(200, 900))
    before = before.replace("#include", "\0").replace("#define", "\1").replace("#", number)
    before = before.replace("\0", "#include").replace("\1", "#define")
    calls = lot.choice((0, 1, 5))
    text = (
        f"{before}int algorithm_main()\n{{\n"
        "    volatile pcm_uint hidden = get_signal(ACK);\n"
        "    pcm_uint x = hidden;\n    pcm_int y = (pcm_int)x;\n"
        "    set_control(CWND, 50000);\n    set_var(KEPT, get_var(KEPT) + 1);\n"
        f"    if (get_var(KEPT) > {calls}) {{ {form} }}\n"
        "    set_arr_uint(TABLE, 1, x + (pcm_uint)y);\n    return PCM_SUCCESS;\n}\n"
    )
    return Wild(kind, text, ends)


def main() -> int:
    """Run so many seeds in this one process; 1 if any was not as it should be."""
    from tests.lab.test_pcm import run_with, written

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    asked = parser.parse_args()
    began, amiss = time.perf_counter(), 0
    said: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(asked.seed, asked.seed + asked.count):
            wild, here = drawn(seed), Path(folder) / str(seed)
            print(f"seed {seed}, {wild.kind}", file=sys.stderr, flush=True)
            try:
                ended = run_with(written(here, wild.text), here / "run").result.ended or "nothing"
            except ScenarioError as error:
                ended = str(error)
            well = any(end.split("{")[0] in ended for end in wild.ends) and "mine.c" in ended
            said["ended" if well else "amiss"] += 1
            if not well:
                amiss += 1
                print(f"seed {seed}, {wild.kind}: {ended}\n{wild.text}")
        tame = run_with(Path("swift.c"), Path(folder) / "tame").result
    print(
        f"{dict(said)} in {time.perf_counter() - began:.0f} s; a tame one after them: {tame.ended}"
    )
    return int(bool(amiss or tame.ended))


if __name__ == "__main__":
    sys.exit(main())
