"""`closlab p4c`: the compiler's command line, which takes the flags of p4c-bm2-ss."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from compiler.diagnostics import CompileError
from compiler.driver import STAGES, Compiled, CompileOptions, compile_program
from params.data import Data

USAGE = f"""usage: closlab p4c PROG.p4 [options]

  -o FILE                     write the BMv2 JSON there
  --p4runtime-files F[,F]     write P4Info: text (.txt, .txtpb), binary (.bin) or JSON (.json)
  -I DIR                      look for include files there too
  -D NAME[=VALUE], -U NAME    define or undefine a macro
  -E                          print the preprocessed program and stop
  --Wdisable[=CODE]           leave out warnings, all or those with this code
  --Werror[=CODE]             treat warnings as errors
  --dump STAGE                print the program after {", ".join(STAGES)}
  --std VERSION, --p4v VERSION, -x LANG   16, p4-16 or p4_16
  --arch v1model, --target bmv2, -b bmv2-ss-p4org   what this compiler is for
  --version, -h
"""

# Flags of p4c that change nothing here, with the number of values they take.
_IGNORED = {
    "--emit-externs": 0,
    "--ndebug": 0,
    "-g": 0,
    "-v": 0,
    "--testJson": 0,
    "--parser-inline-opt": 0,
    "--toJSON": 1,
    "--pp": 1,
    "--top4": 1,
    "--Tlog": 1,
    "-T": 1,
    "--nocpp": 0,
    "--loopsUnroll": 0,
    "--disable-annotations": 0,
    "--save-temps": 0,
    "--maxErrorCount": 1,
    "--help-pragmas": 0,
}
_FORMATS = {
    ".txt": "text",
    ".txtpb": "text",
    ".pbtxt": "text",
    ".bin": "binary",
    ".pb": "binary",
    ".json": "json",
}


class UsageError(Exception):
    """The command line cannot be understood."""


class Arguments(Data, frozen=False):
    """The command line, understood."""

    program: Path | None = None
    output: Path | None = None
    p4info: list[Path] = field(default_factory=list)
    include_dirs: list[Path] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    undefines: list[str] = field(default_factory=list)
    disabled: set[str] = field(default_factory=set)
    no_warnings: bool = False
    werror: bool = False
    preprocess_only: bool = False
    dump: list[str] = field(default_factory=list)
    show: str | None = None


def _version(value: str) -> None:
    if value.lower().replace("_", "-") not in ("16", "p4-16", "p416"):
        raise UsageError(f"language version {value} is not supported; this is a P4_16 compiler")


def _arch(value: str) -> None:
    if value not in ("v1model", "ss"):
        raise UsageError(f"architecture {value} is not supported; this compiler knows v1model")


def _target(value: str) -> None:
    if value not in ("bmv2", "bmv2-ss-p4org", "bmv2-v1model-p4org"):
        raise UsageError(f"target {value} is not supported; this compiler writes BMv2 JSON")


def _language(value: str) -> None:
    _version(value)


def parse(argv: list[str]) -> Arguments:  # noqa: PLR0912 - one branch per form of flag
    """Read the command line."""
    made = Arguments()
    valued: dict[str, Callable[[str], None]] = {
        "-o": lambda v: setattr(made, "output", Path(v)),
        "--p4runtime-files": lambda v: made.p4info.extend(Path(p) for p in v.split(",") if p),
        "--p4runtime-file": lambda v: made.p4info.append(Path(v)),
        "-I": lambda v: made.include_dirs.append(Path(v)),
        "-D": made.defines.append,
        "-U": made.undefines.append,
        "--dump": lambda v: made.dump.append(_stage(v)),
        "--std": _version,
        "--p4v": _version,
        "-x": _language,
        "--arch": _arch,
        "-a": _arch,
        "--target": _target,
        "-b": _target,
        "--p4runtime-format": lambda _: None,
    }
    words = iter(argv)
    for word in words:
        if not word.startswith("-") or word == "-":
            if made.program is not None:
                raise UsageError(f"one program at a time: {made.program} or {word}?")
            made.program = Path(word)
            continue
        name, equals, inline = word.partition("=")
        if word in ("-h", "--help", "--version"):
            made.show = word
        elif word == "-E":
            made.preprocess_only = True
        elif name == "--Wdisable":
            if equals:
                made.disabled.update(inline.split(","))
            else:
                made.no_warnings = True
        elif name == "--Werror":
            made.werror = True
        elif name in _IGNORED:
            if _IGNORED[name] and not equals:
                next(words, None)
        elif name in valued and name.startswith("--"):
            valued[name](inline if equals else _following(words, name))
        elif word[:2] in valued:
            valued[word[:2]](word[2:].lstrip("=") or _following(words, word))
        else:
            raise UsageError(f"unknown option {word}")
    return made


def _following(words: object, name: str) -> str:
    value = next(words, None)  # type: ignore[call-overload]
    if value is None:
        raise UsageError(f"{name} needs a value")
    return str(value)


def _stage(name: str) -> str:
    if name not in STAGES:
        raise UsageError(f"there is no stage '{name}'; the stages are {', '.join(STAGES)}")
    return name


def main(argv: list[str] | None = None) -> int:
    """Run the compiler; 0 when the program is good, 1 when it is not, 2 for a bad command."""
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv)
        for path in arguments.p4info:
            if path.suffix not in _FORMATS:
                raise UsageError(
                    f"{path}: the suffix of a P4Info file is one of " + ", ".join(_FORMATS)
                )
        if arguments.show == "--version":
            from importlib.metadata import version  # which nothing else here asks for

            print(f"closlab p4c {version('closlab')} (P4_16 for v1model, BMv2 JSON 2.23)")
            return 0
        if arguments.show:
            print(USAGE, end="")
            return 0
        if arguments.program is None:
            raise UsageError("name the program to compile")
    except UsageError as problem:
        print(f"closlab p4c: {problem}\n{USAGE}", file=sys.stderr, end="")
        return 2
    return _compile(arguments, arguments.program)


def _compile(arguments: Arguments, program: Path) -> int:
    stop = "preprocess" if arguments.preprocess_only else "json"
    if arguments.dump and not arguments.output and not arguments.p4info:
        last = max(STAGES.index(stage) for stage in arguments.dump)
        stop = STAGES[last]
    if arguments.p4info:
        stop = "p4info"
    options = CompileOptions(
        include_dirs=tuple(arguments.include_dirs),
        defines=tuple(arguments.defines),
        undefines=tuple(arguments.undefines),
        disabled_warnings=frozenset(arguments.disabled),
        no_warnings=arguments.no_warnings,
        werror=arguments.werror,
        stop_after=stop,
    )
    try:
        compiled = compile_program(program, options)
    except CompileError as problem:
        count = sum(d.severity == "error" for d in problem.diagnostics)
        print(problem, file=sys.stderr)
        print(f"{count} error{'s' * (count != 1)}", file=sys.stderr)
        return 1
    for diagnostic in compiled.diagnostics:
        print(diagnostic.render(), file=sys.stderr)
    try:
        return _write(arguments, compiled)
    except CompileError as problem:
        print(problem, file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"closlab p4c: cannot write {problem.filename}: {problem.strerror}", file=sys.stderr)
        return 1


def _write(arguments: Arguments, compiled: Compiled) -> int:
    if arguments.preprocess_only:
        assert compiled.text is not None
        print(compiled.text.text, end="")
        return 0
    for stage in arguments.dump:
        from compiler.dump import dump

        print(dump(compiled, stage))
    for path in arguments.p4info:
        path.write_bytes(p4info_bytes(compiled, _FORMATS[path.suffix]))
    if arguments.output is not None:
        if not compiled.json:
            print(f"closlab p4c: without 'main' there is no {arguments.output}", file=sys.stderr)
            return 1
        arguments.output.write_text(compiled.json_text)
    return 0


def p4info_bytes(compiled: Compiled, form: str) -> bytes:
    """P4Info in one of its three forms."""
    from google.protobuf import json_format, text_format

    if form == "binary":
        return bytes(compiled.p4info.SerializeToString(deterministic=True))
    if form == "json":
        return (json_format.MessageToJson(compiled.p4info) + "\n").encode()
    header = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"
    return (header + text_format.MessageToString(compiled.p4info)).encode()


if __name__ == "__main__":
    sys.exit(main())
