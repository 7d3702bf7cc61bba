"""Algorithms that somebody brings: ours by that door do the same, and wild ones end their run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.errors import LabError, ScenarioError
from lab.machine.algorithm import ENDS, FOLDER, built
from lab.runs.run import code_of
from tests.lab.conftest import closlab
from tests.lab.simulated import Run, simulate
from tests.lab.wild import KINDS, drawn

UET = ("trim-incast", "traffic.bytes=100KB")
SMALL = ("trim-incast", "traffic.bytes=20KB", "traffic.senders=3")
ROCE = ("incast", "traffic.bytes=1MB", "buffer.bytes=16MB")
YAML = """
algorithm: {name: mine}
signals:
  - {name: ACK, type: PCM_SIG_ACK, accumulation: PCM_SIG_ACCUM_SUM, trigger_threshold: 1}
  - {name: RTT, type: PCM_SIG_RTT, accumulation: PCM_SIG_ACCUM_LAST}
controls:
  - {name: CWND, type: PCM_CTRL_CWND, initial_value: 4 * FABRIC_LINK_MTU}
variables:
  - {name: KEPT, type: uint}
  - {name: TABLE, type: uint, arr_len: 8}
"""
HEAD = '#include "pcmh.h"\n#include "mine.h"\n'


def written(folder: Path, body: str, yaml: str = YAML) -> Path:
    """An algorithm of its own: what it does when it is called."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.yaml").write_text(yaml)
    path = folder / "mine.c"
    path.write_text(HEAD + body)
    return path


def main(body: str) -> str:
    return f"int algorithm_main()\n{{\n{body}\nreturn PCM_SUCCESS;\n}}\n"


def run_with(algorithm: Path, out: Path, scenario: tuple[str, ...] = SMALL, *more: str) -> Run:
    name, *changes = scenario
    said = ("transport.cc=pcm", f"transport.pcm.file={algorithm}")
    return simulate(name, *changes, *said, *more, out=out)


# --- ours through the same door ------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        ("seed=7", "link.fabric_rate_gbps=50", "loss.rate=0.002"),
        pytest.param((), marks=pytest.mark.slow),
        pytest.param(("link.rate_gbps=400", "traffic.bytes=400KB"), marks=pytest.mark.slow),
    ],
)
def test_swift_is_swift(more: tuple[str, ...], tmp_path: Path) -> None:
    """The built-in control, and the same rewritten against the public interface: to the byte."""
    same_flows(tmp_path, UET, "swift", (), more)


@pytest.mark.parametrize(
    "more", [(), pytest.param(("link.fabric_rate_gbps=400",), marks=pytest.mark.slow)]
)
def test_timely_is_timely(more: tuple[str, ...], tmp_path: Path) -> None:
    same_flows(tmp_path, ROCE, "timely", ("transport.pcm.ask_every=3",), more)


def same_flows(
    folder: Path,
    scenario: tuple[str, ...],
    name: str,
    changes: tuple[str, ...],
    more: tuple[str, ...],
) -> None:
    own = simulate(*scenario, *more, f"transport.cc={name}", out=folder / "own")
    brought = run_with(Path(f"{name}.c"), folder / "pcm", scenario, *more, *changes)
    assert own.result.flows.failed == 0
    for file in ("flows.csv", "timeseries.csv"):
        assert (folder / "pcm" / file).read_bytes() == (folder / "own" / file).read_bytes()
    without = simulate(*scenario, *more, "transport.cc=none", out=folder / "none")
    assert without.result.flows != brought.result.flows  # it had something to do


@pytest.mark.slow
def test_on_mininet_as_well(tmp_path: Path) -> None:
    words = ("--set", "transport.cc=pcm", "--set", "transport.pcm.file=swift.c")
    done = closlab("run", *UET[:1], "--engine", "mininet", *words, "--out", str(tmp_path / "a"))
    assert done.returncode == 0, done.stdout + done.stderr
    wild = written(tmp_path, main("*(volatile int *)8 = 1;"))
    words = ("--set", "transport.cc=pcm", "--set", f"transport.pcm.file={wild}")
    done = closlab("run", *UET[:1], "--engine", "mininet", *words, "--out", str(tmp_path / "b"))
    assert done.returncode == 1
    assert "mine.c wrote at 0x8, which is not its own" in done.stdout + done.stderr


# --- the interface -------------------------------------------------------------------------------


def test_signals_gather_until_one_triggers(tmp_path: Path) -> None:
    """Every fourth answer calls it, with what has gathered; what it sets is added to what comes."""
    yaml = YAML.replace("trigger_threshold: 1", "trigger_threshold: 4")
    body = main(
        "if (get_signal(ACK) != 4 || get_signal_trigger_mask() != ACK) return PCM_ERROR;"
        "update_signal(ACK, -3); set_control(CWND, 100000);"
    )
    assert run_with(written(tmp_path, body, yaml), tmp_path / "run").result.ended is None
    body = body.replace("!= 4", "!= (get_var(KEPT) ? 4 : 3)")
    wrong = run_with(written(tmp_path, body, yaml), tmp_path / "run").result
    assert wrong.ended == "mine.c said that it cannot go on (it did not return PCM_SUCCESS)"


def test_what_it_asks_for_is_bounded(tmp_path: Path) -> None:
    """No window, the largest there is, not a number: adapters keep on."""
    for number, asked in enumerate(("0", "-1", "0.0 / 0.0", "1.0 / 0.0", "1")):
        path = written(
            tmp_path / str(number),
            main(f"volatile double x = {asked};set_control(CWND, (pcm_uint)x);"),
        )
        result = run_with(path, tmp_path / f"run{number}").result
        assert (result.ended, result.flows.failed) == (None, 0), asked


def test_the_adapters_words_are_the_interfaces() -> None:
    """There are words for each end of a call."""
    header = (FOLDER / "program.h").read_text()
    ends = re.search(r"enum pcm_end \{(.*?)\};", header, re.DOTALL)
    assert ends and len(re.findall(r"PCM_\w+,", ends[1])) == len(ENDS) + 1  # PCM_ENDS


REFUSED = {
    "static int kept; ": "kept is static",
    'void *dlopen(const char *, int); static void f(void) { dlopen("x", 0); }': "it calls dlopen",
    'static void f(void) { __asm__ volatile("nop"); }': "it holds assembler",
    "void abort(void); static void f(void) { abort(); }": "it calls abort",
    "static void f(void) { __builtin_trap(); }": "a trap",
    "static void f(void) { ((void (*)(void))snapshot_of())(); }": "through a pointer",
    "static void f(void) { volatile char a[1 << 20]; a[0] = 1; }": "frame",
    "static void f(void) { volatile char a[kept_of()]; a[0] = 1; }": "variable",
    "__attribute__((constructor)) void g(void) {} static void f(void) {}": "section .init_array",
    "static void f(void) { this is no C }": "error",
}


@pytest.mark.parametrize("before", REFUSED, ids=lambda text: REFUSED[text])
def test_what_cannot_be_walled_in_is_refused(before: str, tmp_path: Path) -> None:
    given = before.replace("snapshot_of()", "*(void *volatile *)here").replace("kept_of()", "*here")
    given = given.replace("f(void)", "f(volatile pcm_uint *here)")
    call = "kept++;" if "kept;" in before else "f(snapshot);"
    with pytest.raises(ScenarioError, match=r"transport\.pcm\.file: mine\.c: .*") as caught:
        built(str(written(tmp_path, given + main(call))))
    assert REFUSED[before] in str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("PCM_SIG_RTT", "PCM_SIG_ACK_EV"), "do not tell PCM_SIG_ACK_EV"),
        (("PCM_SIG_RTT", "PCM_SIG_X"), "there is no signal PCM_SIG_X"),
        (("PCM_CTRL_CWND", "PCM_CTRL_EV"), "not steered by PCM_CTRL_EV"),
        (("4 * FABRIC_LINK_MTU", "__import__('os')"), "not understood"),
        (("4 * FABRIC_LINK_MTU", "9 ** 9 ** 9"), "not understood"),
        (("arr_len: 8", "arr_len: 256"), "it keeps 262 words a flow"),
        (("name: KEPT", "name: RTT"), "RTT is there twice"),
        (("name: KEPT", "name: a b"), "variables.0.name"),
        (("algorithm:", "algorithms:"), "algorithm"),
        (("signals:", "signals: ["), "is not YAML"),
    ],
)
def test_a_yaml_that_is_wrong_is_told_of(
    change: tuple[str, str], expected: str, tmp_path: Path
) -> None:
    path = written(tmp_path, main(""), YAML.replace(*change))
    with pytest.raises(ScenarioError, match=r"transport\.pcm\.file: mine\.c") as found:
        built(str(path))
    assert expected in str(found.value)


def test_it_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"name it by transport\.pcm\.file"):
        simulate(*UET, "transport.cc=pcm", out=tmp_path)
    with pytest.raises(LabError, match=r"nowhere\.c"):
        run_with(Path("nowhere.c"), tmp_path)


# --- wild ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", (2, 3))
def test_a_wild_one_ends_its_run_and_nothing_else(seed: int, tmp_path: Path) -> None:
    """With a message that names it; the same process then runs a tame one as if nothing were."""
    wild = drawn(seed)
    path = written(tmp_path, wild.text)
    result = run_with(path, tmp_path / "wild").result
    assert result.ended and result.ended.startswith("mine.c "), wild
    assert any(end.split("{")[0] in result.ended for end in wild.ends), (wild, result.ended)
    assert code_of(result) == 1
    assert run_with(Path("swift.c"), tmp_path / "tame").result.ended is None


def test_every_kind_is_drawn_in_the_long_sweep() -> None:
    assert {drawn(seed).kind for seed in range(60)} == set(KINDS)
