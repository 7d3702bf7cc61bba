"""Algorithms for programmable congestion management (PCM): from a file of C, and a file of YAML
beside it, to what adapters load.

The YAML file says which signals call the algorithm and what it keeps; of that a header is made for
it, and tables. The C is compiled with the calls that `traffic/core/cc/pcm/guard.c` answers, and its
assembler is looked through: what could get past them is refused (docs/pcm.md).
"""

from __future__ import annotations

import ast
import ctypes
import platform
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from files import FileError, is_file, read_text, shown
from lab.errors import ScenarioError
from lab.machine.building import building
from params.section import Section
from switch import build
from switch.cache import kept
from traffic.collectives import complaint
from traffic.endpoint import CORE
from traffic.reading import YamlError, parse_yaml

FOLDER = CORE / "cc" / "pcm"
EXAMPLES = FOLDER / "examples"
_MAX_BYTES = 1_000_000
_MAX_SIGNALS, _MAX_CONTROLS, _MAX_WORDS = 8, 2, 256  # traffic/core/cc/pcm/program.h
_MAX_S = 60  # that a compiler may take
_WALLS = (
    *("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"),
    "-fsanitize=kernel-address",
    *("--param=asan-instrumentation-with-call-threshold=0", "--param=asan-stack=0"),
    *("--param=asan-globals=0", "-fsanitize-coverage=trace-pc", "-finstrument-functions"),
    "-fsanitize=integer-divide-by-zero,signed-integer-overflow,unreachable",
    # What would jump by a register, leave a function otherwise than by its end, or trap.
    *("-fno-jump-tables", "-fno-optimize-sibling-calls", "-fno-delete-null-pointer-checks"),
    *("-fno-isolate-erroneous-paths-dereference", "-fno-isolate-erroneous-paths-attribute"),
    *("-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fomit-frame-pointer"),
    *("-Werror=vla", "-Werror=alloca", "-Werror=frame-larger-than=16384"),
)
_GUARD = (
    *("-std=gnu11", "-O2", "-fPIC", "-ffp-contract=off", "-fno-builtin", "-fno-stack-protector"),
    *(("-mtls-dialect=gnu2",) if platform.machine() == "x86_64" else ()),  # the quick one
    *("-w", "-shared", "-nostdlib", "-Wl,--no-undefined", "-Wl,-Bsymbolic"),
)
# What an algorithm may call besides itself: what is told or computed, and writes nowhere.
_CALLED_WORDS = """
    acos asin atan atan2 cbrt ceil cos exp exp2 fabs floor fmax fmin fmod hypot log log10 log2 pow
    rint round sin sqrt tan tanh trunc ceilf expf fabsf floorf fmaxf fminf logf powf roundf sqrtf
    lround llround printf fprintf puts putchar fputc fwrite memcpy memmove memset pcm_way
    __assert_fail stderr stdout
"""
_CALLED = frozenset(_CALLED_WORDS.split())
_HOOKS = ("__asan_", "__ubsan_handle_", "__sanitizer_cov_trace_pc", "__cyg_profile_func_")
_FUNCTIONS = {"sqrt", "log", "exp", "pow", "ceil", "floor"}
_OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_WAY = {
    "FABRIC_LINK_RATE_GBPS": "PCM_WAY[0]",  # bytes a ns
    "FABRIC_HOP_COUNT": "PCM_WAY[1]",
    "FABRIC_LINK_MSS": "PCM_WAY[2]",
    "FABRIC_LINK_MTU": "PCM_WAY[2]",
    "FABRIC_MIN_CWND": "PCM_WAY[2]",
    "FABRIC_BDP": "PCM_WAY[3]",
    "FABRIC_MAX_CWND": "(1.5 * PCM_WAY[3])",
    "FABRIC_BRTT": "PCM_WAY[4]",
    "FABRIC_TRTT": "(1.75 * PCM_WAY[4])",
}
# enum pcm_end; a test holds that there is one for each.
ENDS = (
    "",
    "said that it cannot go on (it did not return PCM_SUCCESS)",
    "did not end: a call may take 100,000 steps",
    "read {where}, which is not its own",
    "wrote {where}, which is not its own",
    "took more than 64 KB of stack, or called itself too often",
    "wrote over where it was called from",
    "divided by zero",
    "asserted what is not so",
    "came to where it says that nothing comes",
)

_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")]
_Value = int | float | str
_Type = Literal["uint", "int", "float"]
_SIGNALS = {
    f"PCM_SIG_{name}": number
    for number, name in enumerate(
        ("ACK", "RTO", "NACK", "ECN", "RTT", "DATA_TX", "DATA_NACKED", "IN_FLIGHT", "ELAPSED_TIME")
    )
}
_NOT_HERE = ("ACK_EV", "ECN_EV", "NACK_EV", "TX_READY_PKTS", "TX_BACKLOG_BYTES")
_OPS = {">": "ABOVE", "<": "BELOW", ">=": "AT_LEAST", "<=": "AT_MOST", "==": "IS", "!=": "IS_NOT"}


class _Algorithm(Section):
    name: _Name
    description: str = ""


class _Constant(Section):
    name: _Name
    type: _Type = "uint"
    value: _Value
    description: str = ""


class _Signal(Section):
    name: _Name
    type: str
    accumulation: Literal[
        "PCM_SIG_ACCUM_SUM",
        "PCM_SIG_ACCUM_MIN",
        "PCM_SIG_ACCUM_MAX",
        "PCM_SIG_ACCUM_LAST",
        "PCM_SIG_ACCUM_UNSPEC",
    ] = "PCM_SIG_ACCUM_UNSPEC"
    initial_value: _Value = 0
    trigger_threshold: _Value | None = None
    trigger_type: (
        Literal["PCM_SIG_TRIGGER_RAW", "PCM_SIG_TRIGGER_DELTA", "PCM_SIG_TRIGGER_MAGNITUDE"] | None
    ) = None
    trigger_op: str = ">="
    reset_upon_trigger: bool | Literal["true", "false"] = True
    description: str = ""


class _Control(Section):
    name: _Name
    type: str
    initial_value: _Value = 0
    description: str = ""


class _Variable(Section):
    name: _Name
    type: _Type = "uint"
    initial_value: _Value = 0
    arr_len: int = Field(default=1, ge=1, le=_MAX_WORDS)
    description: str = ""


class _Spec(Section):
    """What a YAML file says."""

    algorithm: _Algorithm
    constants: tuple[_Constant, ...] = ()
    signals: tuple[_Signal, ...] = Field(min_length=1, max_length=_MAX_SIGNALS)
    controls: tuple[_Control, ...] = Field(min_length=1, max_length=_MAX_CONTROLS)
    variables: tuple[_Variable, ...] = ()

    @property
    def constant_names(self) -> frozenset[str]:
        """What expressions may name besides the fabric's numbers."""
        return frozenset(each.name for each in self.constants)

    @property
    def words(self) -> int:
        """Of a flow's snapshot."""
        kept = sum(each.arr_len for each in self.variables)
        return 2 + len(self.signals) + len(self.controls) + kept


class _UnfitError(Exception):
    """What is wrong with an algorithm, without its name."""


def found(name: str) -> Path:
    """The file that is meant: that of this path, or one that ships."""
    path, example = Path(name), EXAMPLES / name
    return example if not is_file(path) and is_file(example) else path


def built(name: str) -> Path:
    """What adapters load of an algorithm: compiled once, and kept."""
    path = found(name)
    changed = tuple(
        each.stat().st_mtime_ns if is_file(each) else 0
        for each in (path, path.with_suffix(".yaml"))
    )
    return _built_then(path, changed)


@lru_cache(maxsize=64)
def _built_then(path: Path, changed: tuple[int, ...]) -> Path:  # noqa: ARG001  (part of the key)
    try:
        made = _built(path)
        if re.search(r"\s", str(made)):
            raise _UnfitError(f"it is kept as {made}, whose blanks adapters cannot read")
        return made
    except (_UnfitError, FileError) as error:
        raise ScenarioError(f"transport.pcm.file: {shown(path.name)}: {error}") from None


def _built(path: Path) -> Path:
    if path.suffix != ".c":
        raise _UnfitError("an algorithm is a file of C, such as swift.c, with swift.yaml beside it")
    if build.made_for() is not None:
        raise _UnfitError("it is compiled by this machine's gcc, and there is none")
    read_text(path, _MAX_BYTES)
    spec = _spec(path.with_suffix(".yaml"))
    with tempfile.TemporaryDirectory(prefix="closlab-pcm-") as folder:
        work = Path(folder)
        (work / f"{spec.algorithm.name}.h").write_text("\n".join(_header(spec)))
        (work / "spec.c").write_text("\n".join(_tables(spec)))
        assembler = [_assembled(path, spec, work)]
        if _strangers([assembler[0].read_text()]):
            assembler += [_assembled(each, spec, work) for each in _beside(path, spec, work)]
        texts = [each.read_text() for each in assembler]
        _check(texts)
        lent = [(FOLDER / each).read_bytes() for each in ("guard.c", "program.h")]
        key = build.digest(
            build.compiler_id(), *_GUARD, *texts, (work / "spec.c").read_bytes(), *lent
        )

        def make(output: Path) -> None:
            parts = [*map(str, assembler), str(FOLDER / "guard.c"), str(work / "spec.c")]
            words = [*_GUARD, "-iquote", str(FOLDER), "-iquote", str(work), *parts, "-lm", "-lc"]
            _compiler(*words, "-o", str(output))

        with building(f"the algorithm '{path.name}'"):
            return kept(f"pcm-{path.stem}-{key}", make)


def _compiler(*words: str) -> str:
    """What the compiler says to that, if it takes it."""
    try:
        done = subprocess.run(
            [*build.compiler(), *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_MAX_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise _UnfitError(f"the compiler had not done with it after {_MAX_S} s") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise _UnfitError(
            (said or done.stderr.splitlines() or ["the compiler refuses it"])[0][:500]
        )
    return done.stdout


# --- what the YAML file says ---------------------------------------------------------------------


def _spec(path: Path) -> _Spec:
    text = read_text(path, _MAX_BYTES)
    try:
        spec = _Spec.model_validate(parse_yaml(re.sub(r"!eval\s+", "", text)))
    except YamlError as error:
        raise _UnfitError(f"{path.name} is not YAML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _UnfitError(f"{path.name}: {place}: {complaint(first)}") from None
    for signal in spec.signals:
        if signal.type.removeprefix("PCM_SIG_") in _NOT_HERE:
            raise _UnfitError(f"{path.name}: adapters here do not tell {signal.type}")
        if signal.type not in _SIGNALS:
            raise _UnfitError(f"{path.name}: there is no signal {shown(signal.type)}")
        if signal.trigger_op not in _OPS:
            raise _UnfitError(f"{path.name}: there is no trigger_op {shown(signal.trigger_op)}")
    for control in spec.controls:
        if control.type not in ("PCM_CTRL_CWND", "PCM_CTRL_RATE"):
            raise _UnfitError(
                f"{path.name}: adapters here are not steered by {shown(control.type)}, only by "
                "PCM_CTRL_CWND and PCM_CTRL_RATE"
            )
    kinds: tuple[Sequence[_Constant | _Signal | _Control | _Variable], ...] = (
        spec.constants, spec.signals, spec.controls, spec.variables
    )  # fmt: skip
    names = [each.name for kind in kinds for each in kind]
    if twice := {name for name in names if names.count(name) > 1}:
        raise _UnfitError(f"{path.name}: {min(twice)} is there twice")
    if spec.words > _MAX_WORDS:
        raise _UnfitError(f"{path.name}: it keeps {spec.words} words a flow; {_MAX_WORDS} are most")
    return spec


def _expression(value: _Value, known: frozenset[str]) -> str:
    """A value in C: a number, or what is to be computed of constants and the fabric's numbers."""
    if not isinstance(value, str):
        return repr(value)
    try:
        tree = ast.parse(value, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _UnfitError(f"{shown(value)} is no expression") from None
    return _in_c(tree, value, known)


def _in_c(node: ast.expr, text: str, known: frozenset[str]) -> str:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return f"{float(number)!r}"
        case ast.Name(id=name) if name in known or name in _WAY:
            return f"(double)({name})"
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            return f"(-{_in_c(inside, text, known)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            parts = (_in_c(each, text, known) for each in (left, right))
            return f"({f' {_OPERATIONS[type(op)]} '.join(parts)})"
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return f"{name}({', '.join(_in_c(each, text, known) for each in given)})"
    raise _UnfitError(f"{shown(text)}: {ast.unparse(node)[:60]} is not understood")


def _header(spec: _Spec) -> Iterator[str]:
    """What the C includes by the algorithm's name."""
    yield from ("#pragma once", '#include "pcm.h"', "#ifndef PCM_WAY", "#include <math.h>")
    yield from ("const double *pcm_way(void);", "#define PCM_WAY pcm_way()", "#endif")
    yield from (f"#define {name} {place}" for name, place in _WAY.items())
    known = spec.constant_names
    for constant in spec.constants:
        value = _expression(constant.value, known)
        if isinstance(constant.value, str):
            value = f"((pcm_{constant.type})({value}))"
        yield f"#define {constant.name} {value}"
    signals, controls = len(spec.signals), len(spec.controls)
    yield from ("#define MASK_OFFSET 0", "#define SET_SIGNAL_MASK_OFFSET 1")
    yield from ("#define SIGNAL_OFFSET 2", f"#define CONTROL_OFFSET {2 + signals}")
    yield f"#define VAR_OFFSET {2 + signals + controls}"
    for at, signal in enumerate(spec.signals):
        yield f"enum {{ {signal.name} = 1 << {at} }};"
    for at, control in enumerate(spec.controls):
        yield f"enum {{ {control.name} = {at} }};"
    at = 0
    for variable in spec.variables:
        yield f"enum {{ {variable.name} = {at} }};"
        at += variable.arr_len
    yield ""


def _tables(spec: _Spec) -> Iterator[str]:
    """What the adapter knows of it, as C."""
    known = spec.constant_names
    yield from ("#define PCM_WAY fabric", "#include <math.h>", '#include "pcmh.h"')
    yield from ('#include "program.h"', f'#include "{spec.algorithm.name}.h"')
    yield "static const struct pcm_signal SIGNALS[] = {"
    for signal in spec.signals:
        is_called = signal.trigger_threshold is not None
        trigger = (signal.trigger_type or "PCM_SIG_TRIGGER_RAW") if is_called else None
        yield (
            f"    {{{signal.type}, {signal.accumulation}, {trigger or 'PCM_SIG_TRIGGER_UNSPEC'}, "
            f"PCM_{_OPS[signal.trigger_op]}, {int(signal.reset_upon_trigger in (True, 'true'))}}},"
        )
    yield "};"
    controls = ", ".join(each.type for each in spec.controls)
    yield f"static const uint8_t CONTROLS[] = {{{controls}}};"
    yield (
        "static void fill(uint64_t *snapshot, uint64_t *initial, uint64_t *threshold, "
        "const double *fabric)"
    )
    yield "{"
    for at, signal in enumerate(spec.signals):
        yield f"    initial[{at}] = (pcm_uint)({_expression(signal.initial_value, known)});"
        value = _expression(signal.trigger_threshold or 0, known)
        yield f"    threshold[{at}] = (pcm_uint)({value});"
    for control in spec.controls:
        value = _expression(control.initial_value, known)
        yield f"    snapshot[CONTROL_OFFSET + {control.name}] = (pcm_uint)({value});"
    for variable in spec.variables:
        value = f"(pcm_{variable.type})({_expression(variable.initial_value, known)})"
        value = f"pcm_of_float({value})" if variable.type == "float" else f"(pcm_uint){value}"
        yield f"    for (int i = 0; i < {variable.arr_len}; i++)"
        yield f"        snapshot[VAR_OFFSET + {variable.name} + i] = {value};"
    yield "}"
    yield "extern struct pcm_fault pcm_fault;"
    yield "enum pcm_end pcm_call(uint64_t *snapshot, const double *fabric);"
    yield f'__attribute__((visibility("hidden"))) const uint32_t pcm_words = {spec.words};'
    yield (
        f"const struct pcm_program pcm_program = {{{len(spec.signals)}, {len(spec.controls)}, "
        f"{spec.words}, SIGNALS, CONTROLS, &pcm_fault, fill, pcm_call}};"
    )
    yield ""


# --- the C ---------------------------------------------------------------------------------------


def _words(source: Path, spec: _Spec, work: Path) -> list[str]:
    """How a source is compiled: its own folder comes first, then the interface."""
    folders = (work, source.parent, source.parent.parent, FOLDER)
    includes = [word for folder in folders for word in ("-I", str(folder))]
    return [*includes, "-DHANDLER_BUILD", f"-DBUILD_ALGO_{spec.algorithm.name.upper()}"]


def _beside(path: Path, spec: _Spec, work: Path) -> list[Path]:
    """The sources of the headers that it includes from beside it."""
    rule = _compiler("-MM", *_words(path, spec, work), str(path))
    headers = (Path(word) for word in rule.replace("\\\n", " ").split() if word.endswith(".h"))
    sources = (each.with_suffix(".c") for each in headers if each.parent == path.parent)
    return [each for each in sources if each != path and is_file(each)]


def _assembled(source: Path, spec: _Spec, work: Path) -> Path:
    output = work / f"{source.stem}.s"
    _compiler("-S", *_WALLS, *_words(source, spec, work), str(source), "-o", str(output))
    return output


_BY_REGISTER = re.compile(r"\b(?:call|jmp)q?\s+\*|\b(?:blr|br)\s+x")
_TRAP = re.compile(r"\b(?:ud2|brk)\b")
_CALL = re.compile(r"\b(?:callq?|jmpq?|bl|b)\s+([A-Za-z_][\w.$]*)")
_FAR = re.compile(
    r"([A-Za-z_][\w.$]*)@(?:GOTPCREL|GOT|PLT|TPOFF|GOTTPOFF)|:got(?:_lo12)?:([\w.$]+)"
)
_PLACE = re.compile(r"^([\w.$]+):")
_JUMP = re.compile(r"^\s+(?:jmp|b)\s+([\w.$]+)$")
_KEPT = re.compile(r"^(?!\.Lubsan_)([A-Za-z_.$][\w.$]*):")
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):")


def _strangers(texts: list[str]) -> list[str]:
    """What they call or reach for that is neither theirs nor an algorithm's to call."""
    lines = [line for text in texts for line in text.splitlines()]
    own = {label[1] for line in lines if (label := _LABEL.match(line))}
    named = (
        name
        for line in lines
        for name in (*_CALL.findall(line), *(a or b for a, b in _FAR.findall(line)))
    )
    return [
        name
        for name in dict.fromkeys(named)
        if name not in own and name not in _CALLED and not name.startswith(_HOOKS)
    ]


def _spins(text: str) -> bool:
    """Whether jumps alone make a circle: the one kind of block that gcc counts no step of."""
    ways: dict[str, str] = {}
    here: list[str] = []
    for line in text.splitlines():
        if label := _PLACE.match(line):
            here.append(label[1])
        elif here and line.strip() and not line.strip().startswith((".", "#")):
            if jump := _JUMP.match(line):
                ways |= dict.fromkeys(here, jump[1])
            here = []
    for start in ways:
        at, seen = start, set[str]()
        while at in ways and at not in seen:
            seen.add(at)
            at = ways[at]
        if at in seen:
            return True
    return False


def _check(texts: list[str]) -> None:
    """That no instruction can do what is not asked about first."""
    if strangers := _strangers(texts):
        raise _UnfitError(f"it calls {strangers[0]}, which an algorithm cannot")
    for text in texts:
        _check_storage(text)
        if "#APP" in text:
            raise _UnfitError("it holds assembler; it may be C alone")
        if _BY_REGISTER.search(text):
            raise _UnfitError("it calls through a pointer; it may call what it names alone")
        if _spins(text):
            raise _UnfitError("it has a loop that does nothing and has no end")
        if _TRAP.search(text):
            raise _UnfitError("it has a trap (__builtin_trap); return PCM_ERROR in its place")


def _check_storage(text: str) -> None:
    """That it keeps nothing between calls but in its variables, and runs nothing of itself."""
    place = "text"
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith((".comm", ".lcomm", ".local")):
            name = stripped.split()[1].split(",")[0]
            raise _UnfitError(f"{name} is static, and all flows would share it: make it a variable")
        if stripped.startswith((".text", ".data", ".bss")):
            place = stripped.split()[0].strip(".")
        elif stripped.startswith(".section"):
            place = stripped.split()[1].split(",")[0].strip(".").split(".")[0]
            if place not in ("text", "rodata", "note", "data"):
                raise _UnfitError(f"it has a section .{place}, which an algorithm cannot")
        elif place in ("data", "bss") and (label := _KEPT.match(line)):
            raise _UnfitError(
                f"{label[1]} is static, and all flows would share it: make it a variable of the "
                "YAML file, or const"
            )


# --- what it does in a run -----------------------------------------------------------------------


class Wildness:
    """What an algorithm does in this process for which its run, which begins, has to end."""

    def __init__(self, file: str) -> None:
        self._file = file
        words = ctypes.c_uint64 * 2  # struct pcm_fault
        self._fault = words.in_dll(ctypes.CDLL(str(built(file))), "pcm_fault")
        self._fault[0] = 0

    @property
    def said(self) -> str | None:
        """What it was, if it was anything."""
        end, where = self._fault
        return ending(self._file, end, where) if end else None


def ending(file: str, end: int, where: int) -> str:
    """What an algorithm did that ends a run, in words."""
    return f"{found(file).name} {ENDS[end].format(where=f'at {where:#x}')}"
