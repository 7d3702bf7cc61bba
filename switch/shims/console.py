"""simple_switch_CLI's commands, served to whoever can reach the switch's console port.

BMv2 has a Thrift server there. Ours is a line of text for a command and a line of JSON for its
answer, on the loopback address only; `simple_switch_CLI` of `closlab shims` is the client. The
commands go through the same checks and the same store as P4Runtime's, so both views agree.

Each command is a function of the session and its words that yields the lines to print; its
docstring is its help.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from switch import dataplane as dp
from switch.p4runtime.errors import RequestError
from switch.shims import arrays, ports, profiles, replication, tables
from switch.shims.session import CommandError, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from switch.p4runtime.device import Device

    Command = Callable[[Session, list[str]], Iterator[str] | None]

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 1 << 16

COMMANDS: dict[str, Command] = {
    name.removeprefix("do_"): function
    for module in (tables, profiles, arrays, replication, ports)
    for name, function in vars(module).items()
    if name.startswith("do_")
}


class Console:
    """Runs commands on one switch."""

    def __init__(self, device: Device) -> None:
        self._session = Session(device)
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Serve on a loopback port; raises OSError if it is taken."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", port, limit=MAX_LINE_BYTES
        )

    async def stop(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def run(self, line: str) -> str:
        """Carry out one command and return what it prints."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return ""
        if words[0] == "help":
            return _help(words[1:])
        command = COMMANDS.get(words[0])
        if command is None:
            return f"*** Unknown syntax: {line}\nTry: help\n"
        lines: list[str] = []
        try:
            lines.extend(command(self._session, words[1:]) or ())
        except CommandError as error:
            lines.append(f"Error: {error}")
            lines.append(f"Usage: {_usage(command)}")
        except RequestError as error:
            lines.append(f"Error: {error.message}")
        except dp.DataplaneError as error:
            lines.append(f"Error: {error}")
        return "".join(f"{text}\n" for text in lines)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = self.run(line.decode(errors="replace").strip())
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ValueError, ConnectionError) as error:
            log.info("a console client went away: %s", error)
        finally:
            writer.close()


def _usage(command: Command) -> str:
    return (command.__doc__ or "").partition(": ")[2]


def _help(words: list[str]) -> str:
    if words and words[0] in COMMANDS:
        return f"{COMMANDS[words[0]].__doc__}\n"
    return "\n".join(sorted(COMMANDS)) + "\nhelp COMMAND tells more.\n"
