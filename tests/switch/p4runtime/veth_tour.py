"""A host with real interfaces; run inside a network namespace of its own: P4INFO JSON FOLDER."""

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import finsy as fy

from switch.host import Host, SwitchSettings
from tests.switch.p4runtime.rig import wait_for_answers
from tests.veths import run, veth
from tests.waiting import LONG_S, SLOWNESS

FRAME = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)
RAW = socket.htons(3)  # ETH_P_ALL


def tap(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, RAW)
    sock.bind((interface, 0))
    sock.settimeout(5 * SLOWNESS)
    return sock


async def notifications(address: str) -> None:
    """A packet, a digest and an idle entry reach the controller under the real clock."""
    async with fy.Switch("a", address, fy.SwitchOptions(device_id=1)) as switch:
        idle = fy.P4TableEntry(
            "mac",
            match=fy.P4TableMatch(dst=5),
            action=fy.P4TableAction("drop"),
            idle_timeout_ns=200_000_000,
        )
        sources = (
            switch.read_packets(),
            switch.read_digests("learn_t"),
            switch.read_idle_timeouts(),
        )
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(anext(aiter(source))) for source in sources
        ]
        await asyncio.sleep(0)  # all of them listen
        await switch.insert([fy.P4DigestEntry("learn_t", max_list_size=1), idle])
        with tap("h1") as source:
            for ether_type in (b"\x88\xb8", b"\x88\xb5"):
                source.send(FRAME[:12] + ether_type + bytes(46))
        packet, digest, timeout = await asyncio.wait_for(asyncio.gather(*tasks), LONG_S)
    assert packet["ingress_port"] == 1
    assert digest.data[0] == {"mac": 0x0A0000000001, "port": 1}
    assert timeout.table_entry[0].match["dst"] == 5


async def main(p4info: Path, program: Path, folder: Path) -> None:
    wait_for_answers()
    run("ip link set lo up")
    for number in (1, 2, 3, 4):
        veth(f"s{number}", f"h{number}")
    story: list[str] = []
    # Two switches in a row: h1 - a - (s2/h2 is a cable: b's port) - b - h4.
    switches = [
        SwitchSettings(
            name="a",
            device_id=1,
            grpc_address="127.0.0.1:0",
            ports={1: "s1", 2: "s2"},
            cpu_port=510,
            pcap=folder,
            trace=story.append,
        ),
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
        await notifications(f"127.0.0.1:{host.grpc_port('a')}")
        stats = host.devices["a"].plane.stats()
        assert stats.ports[1].rx_packets == 3, stats
        assert stats.ports[2].tx_packets == 2, stats  # the digest copies nothing, it only reports
    finally:
        await host.stop()
    for name in ("s1_in", "s2_out"):
        assert FRAME in (folder / f"{name}.pcap").read_bytes(), name
    assert any("Forward.mac" in line for line in story), story
    print("tour ended")


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
