"""p4runtime-shell 0.0.6, unmodified, in its own environment."""

import asyncio
from pathlib import Path

import pytest

from tests.waiting import LONG_S

from .rig import DEVICE_ID, SHELL_PYTHON, Built, Rig, asynchronous, running

TOUR = Path(__file__).with_name("shell_tour.py")

pytestmark = pytest.mark.skipif(
    not SHELL_PYTHON.exists(),
    reason="p4runtime-shell is not installed: ./closlab shell makes .venv-shell",
)


async def in_shell(*words: str, stdin: str = "") -> str:
    """Run the shell's interpreter and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        str(SHELL_PYTHON),
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(stdin.encode()), LONG_S)
    assert process.returncode == 0, out.decode()
    return out.decode()


@asynchronous
async def test_the_tour(built: Built) -> None:
    async with running() as rig:
        words = (rig.address, str(DEVICE_ID), str(built.p4info), str(built.json))
        out = await in_shell(str(TOUR), *words)
        assert out.rstrip().endswith("tour ended"), out
        assert await sent_frames(rig) == [(2, b"x" * 60)]


async def sent_frames(rig: Rig) -> list[tuple[int, bytes]]:
    rig.plane.service(2_000)
    return [(port, data) for port, data, _ in rig.plane.outputs()]


@asynchronous
async def test_the_prompt_lists_tables_and_reads_entries(built: Built) -> None:
    async with running() as rig:
        config = f"{built.p4info},{built.json}"
        flags = ("--grpc-addr", rig.address, "--device-id", str(DEVICE_ID))
        commands = "\n".join(
            [
                "tables",
                "te = table_entry['mac'](action='forward')",
                "te.match['hdr.ethernet.dst'] = '11:22:33:44:55:66'",
                "te.action['port'] = '3'",
                "te.insert",
                "table_entry['mac'].read(lambda entry: print(entry))",
            ]
        )
        out = await in_shell(
            *("-m", "p4runtime_sh", *flags, "--election-id", "0,1", "--config", config),
            stdin=commands + "\n",
        )
        assert "Forward.ipv4_lpm" in out
        assert "\\\\x11\\\\x22\\\\x33\\\\x44\\\\x55\\\\x66" in out or '"\\x11\\x22' in out, out
