"""Packets through compiled programs: tests/p4 holds programs, and beside each its STF tests.

A test is one .stf file; its program is the .p4 file whose name the test's begins with. Each runs
with our compiler and our switch; `closlab test --reference` also runs it with our compiler and
their switch (BMv2), and with their compiler (p4c) and ours. Where one of them is known to deviate
from the language, the test says so in a line `# p4c: ...` or `# BMv2: ...`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compiler import CompileError, compile_program
from switch.dataplane import WHOLE
from switch.program import Program
from switch.stf import StfResult, StfRunner, report, run_stf

from .chosen import chosen
from .p4 import bmv2

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "p4"
TESTS = sorted(FOLDER.rglob("*.stf"))
P4C = "p4c-bm2-ss"
SIDE_BY_SIDE = 6

# The language surface that programs for v1model use. Each test opens with what it covers of it, in
# a line `# covers: ...`, and every item is some test's.
SURFACE = """
headers; stacks; stacks: next; stacks: last; stacks: run-time index; stacks: push and pop;
header unions; varbit; lookahead; advance; verify; user errors; parser errors; sub-parsers; select;
select with masks; select with ranges; value sets;
if; exit; return; switch on action_run; switch on expressions; hit and miss; functions; actions;
action parameters; controls; for; break and continue; scopes; order of evaluation; op=; ?:;
exact; ternary; lpm; range; optional; const entries; const entries with priorities; default_action;
action profiles; action selectors;
typedef; type; enum; serializable enum; tuples; lists; structs and initialisers; generics; bool;
constants; literals; casts; bit<W> beyond 64; int<W>; add and sub; mul and mod; bitwise operators;
comparisons; precedence; saturating arithmetic; slices; slices as l-values; ++; shifts;
csum16 verify; csum16 update; checksums with payload;
hash crc16; hash crc32; hash csum16; hash xor16; hash identity; hash random;
registers; counters; meters; direct counters; direct meters; digest;
clone I2E; clone E2E; resubmit; recirculate; multicast; random; truncate; log_msg; assert; assume;
static_assert;
drop; intrinsic metadata;
annotations; @name; @hidden; @id; @field_list; @controller_header; V1MODEL_VERSION; #include;
#define; #if; comments
"""

# What the p4c that can be had refuses although the language allows it, by the words it says so in.
P4C_REFUSES = re.compile(
    r"syntax error|[Uu]nsupported|not supported|could not evaluate|limited to"
    r"|Width must be specified for at least one of|'Invalid' produces a result of type"
    r"|expressions in a \?: conditional have different types"
)


def name_of(test: Path) -> str:
    """A test's name in reports."""
    return test.relative_to(FOLDER).with_suffix("").as_posix()


def program_of(test: Path) -> Path:
    """The program a test is for: that with the longest name which the test's begins with."""
    stem = test.stem
    fitting = [p for p in test.parent.glob("*.p4") if re.match(rf"{p.stem}(-|__|$)", stem)]
    assert fitting, f"{test} has no program beside it"
    return max(fitting, key=lambda p: len(p.stem))


@cache
def ours(program: Path) -> dict[str, Any]:
    """A program through our compiler."""
    try:
        return compile_program(program).json
    except CompileError as error:
        pytest.fail(f"{program}: {error}")


def theirs(program: Path) -> dict[str, Any] | str:
    """A program through p4c: its JSON, or what it says against it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "program.json"
        command = [P4C, "-o", str(out), str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr
        code: dict[str, Any] = json.loads(out.read_text())
        return code


def other_with_p4c(test: Path) -> str | None:
    """What a test says p4c does differently, in a line `# p4c: ...`."""
    found = re.search(r"^# p4c: (.*)$", test.read_text(), re.MULTILINE)
    return found[1] if found else None


def covered(test: Path) -> set[str]:
    """What a test says, in its first line, that it covers."""
    found = re.match(r"# covers:(.*)", test.read_text())
    assert found, f"{test} opens with no line '# covers: ...'"
    return {item.strip() for item in found[1].split(",")}


def must_pass(result: StfResult) -> None:
    """Fail with the differences."""
    assert result.passed, "\n".join(report(result))


@pytest.fixture(scope="module")
def on_bmv2(request: pytest.FixtureRequest) -> Iterator[dict[Path, Future[StfResult]]]:
    """Results of the tests chosen, side by side: BMv2 waits more than it works."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {
            test: pool.submit(bmv2.run_stf, ours(program_of(test)), test)
            for test in chosen(request, "test")
            if not bmv2.cannot(test)
        }
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def by_p4c(request: pytest.FixtureRequest) -> Iterator[dict[Path, Future[dict[str, Any] | str]]]:
    """Programs of the tests chosen through p4c, on all processors."""
    tests = (test for test in chosen(request, "test") if not other_with_p4c(test))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield {
            program: pool.submit(theirs, program)
            for program in dict.fromkeys(map(program_of, tests))
        }
        pool.shutdown(cancel_futures=True)


all_tests = pytest.mark.parametrize("test", TESTS, ids=name_of)


def on_ours(test: Path, *, soon: bool) -> None:
    program = Program.load(ours(program_of(test)), soon=soon)
    for whole in (WHOLE, 0):  # the latter: what waits is packed, and everything waits
        must_pass(StfRunner(program, test, whole).run(test.read_text()))


@pytest.mark.by_day(45)
@all_tests
def test_ours(test: Path) -> None:
    """As programs are built quickly."""
    on_ours(test, soon=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ours_as_they_run_fastest() -> None:
    for test in TESTS:
        on_ours(test, soon=False)


@all_tests
@pytest.mark.reference
def test_our_compiler_on_bmv2(test: Path, on_bmv2: dict[Path, Future[StfResult]]) -> None:
    if reason := bmv2.cannot(test):
        pytest.skip(reason)
    must_pass(on_bmv2[test].result())


@all_tests
@pytest.mark.reference
def test_p4c_on_our_switch(test: Path, by_p4c: dict[Path, Future[dict[str, Any] | str]]) -> None:
    if reason := other_with_p4c(test):
        pytest.skip(reason)
    code = by_p4c[program_of(test)].result()
    if isinstance(code, str):
        assert P4C_REFUSES.search(code), code
        pytest.skip(f"{P4C} refuses it: {code.strip().splitlines()[0]}")
    must_pass(run_stf(code, test))


def test_surface_is_covered() -> None:
    surface = {" ".join(item.split()) for item in SURFACE.split(";")}
    said = set().union(*map(covered, TESTS))
    assert said <= surface, f"not part of the surface: {sorted(said - surface)}"
    assert surface <= said, f"covered by no test: {sorted(surface - said)}"


def test_no_program_lies_outside_a_room() -> None:
    assert not [*FOLDER.glob("*.p4"), *FOLDER.glob("*.stf")]


def test_every_program_is_tested() -> None:
    programs = {p for p in FOLDER.rglob("*.p4") if p.parent.name != "include"}
    untested = programs - {program_of(t) for t in TESTS}
    assert not untested, sorted(untested)
