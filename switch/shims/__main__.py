"""What the executables run: `python -m switch.shims NAME WORD...`.

p4c, simple_switch and simple_switch_grpc become `closlab p4c` and `closlab switch` with the words
those understand; simple_switch_CLI talks to a running switch's console.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

DEFAULT_THRIFT_PORT = 9090
_ANSWER_S = 60.0

P4C_IGNORED = {"-b", "--target", "-a", "--arch", "--std", "--p4v", "-x"}


def main(words: list[str]) -> int:
    """Play one of the executables."""
    name, words = words[0], words[1:]
    match name:
        case "p4c":
            _closlab("p4c", driver_words(words))
        case "p4c-bm2-ss":
            _closlab("p4c", words)
        case "simple_switch" | "simple_switch_grpc":
            _closlab("switch", switch_words(words, is_grpc=name == "simple_switch_grpc"))
        case "simple_switch_CLI":
            return command_line(words)
    print(f"closlab shims: there is no {name}", file=sys.stderr)
    return 2


def driver_words(words: list[str]) -> list[str]:
    """Turn p4c's words into p4c-bm2-ss's: its -o names a folder, and it is told the target."""
    out: list[str] = []
    folder = Path()
    rest = iter(words)
    source = ""
    for word in rest:
        flag, equals, _ = word.partition("=")
        if flag in P4C_IGNORED:
            if not equals:
                next(rest, None)
        elif word in ("-o", "--output"):
            folder = Path(next(rest, "."))
        else:
            if word.endswith((".p4", ".p4i")):
                source = word
            out.append(word)
    if source and not {"-h", "--help", "--version", "-v"} & set(words):
        folder.mkdir(parents=True, exist_ok=True)
        out += ["-o", str(folder / Path(source).with_suffix(".json").name)]
    return out


def switch_words(words: list[str], *, is_grpc: bool) -> list[str]:
    """Turn a BMv2 target's words into `closlab switch`'s: Thrift's port has a default.

    simple_switch serves no P4Runtime: a port of the loopback that nobody is told of does.
    """
    cut = words.index("--") if "--" in words else len(words)
    general, target = words[:cut], words[cut + 1 :]
    if not any(word.split("=")[0] == "--thrift-port" for word in general):
        general = ["--console-port", str(DEFAULT_THRIFT_PORT), *general]
    if not is_grpc:
        target = [*target, "--grpc-server-addr", "127.0.0.1:0"]
    return [*general, *(["--", *target] if target else [])]


def command_line(words: list[str]) -> int:
    """Pass lines to a switch's console and print its answers."""
    import argparse

    parser = argparse.ArgumentParser(prog="simple_switch_CLI")
    parser.add_argument("--thrift-port", type=int, default=DEFAULT_THRIFT_PORT)
    parser.add_argument("--thrift-ip", default="127.0.0.1")
    parser.add_argument("--json", help="ignored: the switch knows its program")
    parser.add_argument("--pre", help="ignored: the switch knows its replication engine")
    arguments = parser.parse_args(words)
    try:
        connection = socket.create_connection((arguments.thrift_ip, arguments.thrift_port), 5)
    except OSError:
        print(
            f"Could not connect to a switch on port {arguments.thrift_port}\n"
            "Make sure the switch is running and that you have the right port",
            file=sys.stderr,
        )
        return 1
    with connection, connection.makefile("rw", encoding="utf-8", newline="\n") as stream:
        connection.settimeout(_ANSWER_S)
        print("Control utility for runtime P4 table manipulation")
        while (line := _next_line()) is not None:
            if line.strip() in ("EOF", "exit", "quit"):
                break
            if not line.strip():
                continue
            stream.write(line.strip() + "\n")
            stream.flush()
            answer = stream.readline()
            if not answer:
                print("the switch has gone", file=sys.stderr)
                return 1
            print(json.loads(answer), end="", flush=True)
    return 0


def _next_line() -> str | None:
    try:
        return input("RuntimeCmd: ")
    except EOFError:
        print()
        return None
    except KeyboardInterrupt:
        print()
        return None


def _closlab(command: str, words: list[str]) -> NoReturn:
    program = Path(sys.executable).with_name("closlab")
    sys.stdout.flush()
    os.execv(program, [str(program), command, *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
