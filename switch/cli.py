"""`closlab switch`: one switch, started with simple_switch_grpc's own flags.

    closlab switch -i 1@veth1 -i 2@veth2 prog.json -- --grpc-server-addr 0.0.0.0:9559 --cpu-port 510

Flags before `--` are those of every BMv2 target, flags after it those of simple_switch_grpc. Some
have nothing to do here; they are accepted and say so.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from switch.host import SwitchSettings

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL,
}

P4INFO_SUFFIXES = (".p4info.txtpb", ".p4info.txt", ".p4info.json", ".p4info.bin")

_IDLE_FLAGS = {
    "nanolog": "there is no nanomsg event log; --log-console tells each packet's story",
    "debugger_addr": "there is no debugger; --log-console tells each packet's story",
    "notifications_addr": "there are no nanomsg notifications; P4Runtime streams have them",
    "restore_state": "state is not restored; a controller installs it over P4Runtime",
}


class UsageError(Exception):
    """The words of the command line make no sense; the text says which and why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def main(argv: Sequence[str]) -> int:
    """Run one switch until SIGTERM or SIGINT."""
    try:
        arguments = _parse(argv)
        with ExitStack() as stack:
            settings = _settings(arguments, stack)
            return _run(arguments, settings)
    except UsageError as error:
        _say(f"{error}\nTry: closlab switch --help")
        return 2


def _run(arguments: argparse.Namespace, settings: SwitchSettings) -> int:
    # Late, so that --help and mistakes answer at once.
    from switch.host import Host, HostError, run_until_signal

    logging.basicConfig(level=LEVELS[arguments.log_level], format="%(message)s")
    for flag, notice in _IDLE_FLAGS.items():
        if getattr(arguments, flag) is not None:
            _say(f"--{flag.replace('_', '-')} is ignored: {notice}")
    if arguments.thrift_port is not None:
        _say(
            f"--thrift-port {arguments.thrift_port}: this is no Thrift server; only the"
            " simple_switch_CLI of `closlab shims` can talk to it"
        )
    host = Host([settings])
    try:
        asyncio.run(run_until_signal(host, ready=lambda: _announce(settings)))
    except HostError as error:
        _say(str(error))
        return 1
    return 0


def _announce(settings: SwitchSettings) -> None:
    if settings.grpc_address.endswith(":0"):  # as simple_switch, which has no P4Runtime
        print(
            f"simple_switch_CLI's commands are answered at port {settings.console_port}", flush=True
        )
    else:
        print(f"Server listening on {settings.grpc_address}", flush=True)


def _say(text: str) -> None:
    print(f"closlab switch: {text}", file=sys.stderr, flush=True)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    general, target = _general_parser(), _target_parser()
    if {"-h", "--help"} & set(words):
        print(general.format_help() + "\nafter --:\n" + target.format_help().partition("\n\n")[2])
        raise SystemExit(0)
    if "--version" in words:
        print(f"closlab switch {version('closlab')} (in place of simple_switch_grpc)")
        raise SystemExit(0)
    arguments = general.parse_args(words[:cut])
    target.parse_args(words[cut + 1 :], namespace=arguments)
    if arguments.program is None and arguments.pcap and arguments.pcap.endswith(".json"):
        # `--pcap prog.json`: the directory may be left out, and was.
        arguments.program, arguments.pcap = Path(arguments.pcap), "."
    if arguments.program is None and not arguments.no_p4:
        raise UsageError("give the program's JSON, or --no-p4 to wait for a controller's")
    return arguments


def _general_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="closlab switch",
        description=__doc__,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("program", nargs="?", type=Path, help="the program as BMv2 JSON")
    add("-i", "--interface", action="append", default=[], metavar="PORT@INTF", help="add a port")
    add("--device-id", type=int, default=0, metavar="N", help="P4Runtime device id (0)")
    add("--no-p4", action="store_true", help="start without a program")
    add("--p4info", type=Path, metavar="FILE", help="the program's P4Info, if not beside it")
    add("--pcap", nargs="?", const=".", metavar="DIR", help="record each port, in and out")
    add("--log-console", action="store_true", help="tell each packet's story on stdout")
    add("--log-file", type=Path, metavar="FILE", help="tell it to a file")
    add("-L", "--log-level", choices=tuple(LEVELS), default="info", help="how much to say")
    add("--log-flush", action="store_true", help="accepted: logs are always flushed")
    add("--thrift-port", type=int, metavar="N", help="serve simple_switch_CLI's commands there")
    add("--console-port", type=int, help=argparse.SUPPRESS)  # the same, without a word on it
    add("--nanolog", metavar="ADDR", help="ignored")
    add("--notifications-addr", metavar="ADDR", help="ignored")
    add("--debugger", action="store_const", const="", dest="debugger_addr", help="ignored")
    add("--debugger-addr", metavar="ADDR", help="ignored")
    add("--restore-state", metavar="FILE", help="ignored")
    add("--version", action="store_true", help="say which version this is")
    add("--max-port-count", type=int, metavar="N", help="accepted: there is no such limit")
    add("--dump-packet-data", type=int, metavar="N", help="accepted: traces have the bytes")
    return parser


def _target_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="closlab switch ... --", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--grpc-server-addr", default="0.0.0.0:9559", metavar="A:P", help="P4Runtime (%(default)s)")
    add("--cpu-port", type=int, metavar="N", help="the port that leads to the controller")
    add("--drop-port", type=int, default=511, metavar="N", help="the port that drops (511)")
    add("--priority-queues", type=int, default=1, metavar="N", help="queues per port (1)")
    add("--grpc-server-ssl", action="store_true", help="serve TLS")
    add("--grpc-server-cert", type=Path, metavar="PEM", help="the server's certificate")
    add("--grpc-server-key", type=Path, metavar="PEM", help="the server's private key")
    add("--grpc-server-cacert", type=Path, metavar="PEM", help="what signed the clients'")
    add("--grpc-server-with-client-auth", action="store_true", help="demand clients' certificates")
    add("--load-modules", metavar="FILES", help=argparse.SUPPRESS)
    for swap in ("--disable-swap", "--enable-swap"):
        add(swap, action="store_true", help=argparse.SUPPRESS)
    return parser


def _settings(arguments: argparse.Namespace, stack: ExitStack) -> SwitchSettings:
    from switch.host import SwitchSettings, Tls

    tls = None
    if arguments.grpc_server_ssl:
        if arguments.grpc_server_cert is None or arguments.grpc_server_key is None:
            raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
        tls = Tls(arguments.grpc_server_cert, arguments.grpc_server_key, _client_ca(arguments))
    if not 1 <= arguments.priority_queues <= 8:
        raise UsageError("--priority-queues goes from 1 to 8")
    program = None if arguments.no_p4 else arguments.program
    pcap = None if arguments.pcap is None else Path(arguments.pcap)
    if pcap is not None:
        pcap.mkdir(parents=True, exist_ok=True)
    return SwitchSettings(
        name=f"device {arguments.device_id}",
        device_id=arguments.device_id,
        grpc_address=arguments.grpc_server_addr,
        ports=_ports(arguments.interface),
        cpu_port=arguments.cpu_port,
        drop_port=arguments.drop_port,
        queues=arguments.priority_queues,
        program=program,
        p4info=_p4info(program, arguments.p4info),
        tls=tls,
        pcap=pcap,
        trace=_trace(arguments, stack),
        console_port=arguments.thrift_port or arguments.console_port,
        needs_console=arguments.thrift_port is not None,
    )


def _client_ca(arguments: argparse.Namespace) -> Path | None:
    if not arguments.grpc_server_with_client_auth:
        return None
    ca: Path | None = arguments.grpc_server_cacert
    if ca is None:
        raise UsageError("--grpc-server-with-client-auth needs --grpc-server-cacert")
    return ca


def _ports(words: Sequence[str]) -> dict[int, str]:
    ports: dict[int, str] = {}
    for word in words:
        number, at, interface = word.partition("@")
        if not at or not interface or not number.isdecimal():
            raise UsageError(f"-i {word}: expected PORT@INTERFACE, such as 1@veth0")
        if int(number) in ports:
            raise UsageError(f"-i {word}: port {number} is taken by {ports[int(number)]}")
        ports[int(number)] = interface
    return ports


def _p4info(program: Path | None, given: Path | None) -> Path | None:
    """Return the P4Info to use: as given, or one that lies beside the program."""
    if given is not None or program is None:
        return given
    beside = (program.with_suffix(suffix) for suffix in P4INFO_SUFFIXES)
    return next((path for path in beside if path.is_file()), None)


def _trace(arguments: argparse.Namespace, stack: ExitStack) -> Callable[[str], None] | None:
    """Return where packets' stories go, None if nobody wants them."""
    if arguments.log_file is not None:
        try:
            file = stack.enter_context(arguments.log_file.open("w", buffering=1))
        except OSError as error:
            raise UsageError(f"--log-file {arguments.log_file}: {error.strerror}") from None
        return lambda line: print(line, file=file)
    if arguments.log_console:
        return lambda line: print(line, flush=True)
    return None
