"""A host with real interfaces; run inside a network namespace of its own: P4INFO JSON FOLDER."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import finsy as fy

from switch.host import Host, SwitchSettings

FRAME = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)
RAW = socket.htons(3)  # ETH_P_ALL


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def veth(name: str, peer: str) -> None:
    ip("link", "add", name, "type", "veth", "peer", "name", peer)
    for end in (name, peer):
        Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
        ip("link", "set", end, "up")


def tap(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, RAW)
    sock.bind((interface, 0))
    sock.settimeout(5)
    return sock


async def main(p4info: Path, program: Path, folder: Path) -> None:
    ip("link", "set", "lo", "up")
    for number in (1, 2, 3, 4):
        veth(f"s{number}", f"h{number}")
    # Two switches in a row: h1 - a - (s2/h2 is a cable: b's port) - b - h4.
    switches = [
        SwitchSettings("a", 1, "127.0.0.1:0", {1: "s1", 2: "s2"}, cpu_port=510, pcap=folder),
        SwitchSettings("b", 2, "127.0.0.1:0", {1: "h2", 2: "s4"}, cpu_port=510),
    ]
    host = Host(switches)
    await host.start()
    try:
        for item in switches:
            options = fy.SwitchOptions(p4info=p4info, p4blob=program, device_id=item.device_id)
            address = f"127.0.0.1:{host.grpc_port(item.name)}"
            async with fy.Switch(item.name, address, options) as switch:
                forward = fy.P4TableAction("forward", port=2)
                match = fy.P4TableMatch(dst="11:22:33:44:55:66")
                await switch.insert([fy.P4TableEntry("mac", match=match, action=forward)])
        with tap("h1") as source, tap("h4") as sink:
            source.send(FRAME)
            received = await asyncio.to_thread(sink.recv, 2000)
        assert received == FRAME, received.hex()
        stats = host.devices["a"].plane.stats()
        assert stats.ports[1].rx_packets == 1, stats
        assert stats.ports[2].tx_packets == 1, stats
    finally:
        await host.stop()
    for name in ("s1_in", "s2_out"):
        assert FRAME in (folder / f"{name}.pcap").read_bytes(), name
    print("tour ended")


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
