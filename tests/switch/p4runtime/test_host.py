"""Switches as processes: `python -m switch.host`, `closlab switch`, TLS, the console, the shims."""

import asyncio
import errno
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from lab.machine.speed import processor_slowness
from switch import dataplane as dp
from switch import host as host_module
from switch.host import ALL_RINGS, Host, HostError, SwitchSettings, Tls, _ring_bytes
from switch.layout import ARRIVAL_BYTES
from switch.p4runtime.infer import infer_p4info
from switch.shims import NAMES, write_shims
from switch.shims.__main__ import driver_words, switch_words
from tests.lab.ready import ready
from tests.waiting import LONG_S

from .rig import ROOT, Built, asynchronous


def free_port() -> int:
    """One that nobody gets who asks for any, as tests beside this one do."""
    first_of_any = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(10_000, max(first_of_any, 20_000))))
            return int(probe.getsockname()[1])


def settings(number: int, **more: Any) -> dict[str, Any]:
    address = f"127.0.0.1:{free_port()}"
    return {"name": f"s{number}", "device_id": number, "grpc_address": address, **more}


@contextmanager
def process(*words: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process of ours, ended at the end."""
    child = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **more,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def host(config: Path, switches: Any) -> tuple[str, str]:
    config.write_text(json.dumps(switches) if not isinstance(switches, str) else switches)
    return "-m", "switch.host", str(config)  # type: ignore[return-value]


def outcome_of(config: Path, switches: Any) -> tuple[int, str]:
    """The exit code and the error text of a process that must end by itself."""
    done = ready().run(host(config, switches)[2:], os.environ, ROOT, 60, module="switch.host")
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


NO_RECORDER = """
import sys
from switch import host, recorder
recorder.Recorder._run = lambda _: [].pop()
sys.exit(host.main(sys.argv[1:]))
"""


def test_it_ends_with_a_thread_of_its_own(tmp_path: Path) -> None:
    """Whoever started it sees that it is gone; not that it writes nothing down any more."""
    _, _, config = host(tmp_path / "config", [settings(1)])
    with process("-c", NO_RECORDER, config, "--record", str(tmp_path / "record")) as child:
        _, said = child.communicate(timeout=LONG_S)
        assert child.returncode == 1
        assert said.strip().endswith("IndexError: pop from empty list")


def cpu_seconds(pid: int) -> float:
    """The processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def capabilities(address: str) -> str:
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        answer = stub.Capabilities(p4r.CapabilitiesRequest(), wait_for_ready=True, timeout=LONG_S)
        return str(answer.p4runtime_api_version)


@pytest.mark.clock
def test_six_switches_are_ready_soon_and_end_cleanly(tmp_path: Path) -> None:
    switches = [settings(number, cpu_port=510) for number in range(1, 7)]
    with process(*host(tmp_path / "c.json", switches)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        took = cpu_seconds(child.pid)
        for switch in switches:
            assert capabilities(switch["grpc_address"])
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=LONG_S)
        assert child.returncode == 0
        assert out == ""
        assert "Traceback" not in err
    assert took < 0.8 * processor_slowness(), "of one core; usually about 0.3 s of it"


def test_links_change_as_its_input_says_and_what_it_cannot_mean_is_told(tmp_path: Path) -> None:
    switches = [settings(1), {**settings(2), "grpc_address": "127.0.0.1:0"}]
    words = [*host(tmp_path / "c.json", switches), "--links-change"]
    with process(*words, stdin=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        assert child.stderr is not None
        found = re.fullmatch(r"s2 listens at port (\d+)\n", child.stderr.readline())
        assert found and capabilities(f"127.0.0.1:{found[1]}")
        for line in ("{", '{"switch": "s9", "port": 1, "link": {}}'):
            child.stdin.write(line + "\n")
        child.stdin.write('{"switch": "s1", "port": 700, "link": {"rate_bps": 1}}\n')
        child.stdin.flush()
        said = [child.stderr.readline() for _ in range(3)]
        assert all(line.startswith("a line of standard input: ") for line in said)
        assert "there is no 's9'" in said[1] and "port 700 is not 0 to" in said[2]
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=LONG_S)
        assert child.returncode == 0


def test_a_taken_address_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        switches = [settings(1), {**settings(2), "grpc_address": address}]
        code, error = outcome_of(tmp_path / "c.json", switches)
    assert code == 1
    assert f"switch s2 cannot listen on {address}" in error
    assert len(error.splitlines()) == 1, error


def test_two_switches_cannot_share_an_address(tmp_path: Path) -> None:
    first = settings(1)
    second = {**settings(2), "grpc_address": first["grpc_address"]}
    code, error = outcome_of(tmp_path / "c.json", [first, second])
    assert code == 1
    assert first["grpc_address"] in error


def test_a_missing_interface_is_named(tmp_path: Path) -> None:
    switches = [settings(1, ports={"4": "nothing-here0"})]
    code, error = outcome_of(tmp_path / "c.json", switches)
    assert code == 1
    assert "switch s1: port 4@nothing-here0" in error


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[", "is not JSON"),
        ("{}", "expected a list of switches"),
        ("[]", "expected a list of switches"),
        ([{"name": "s"}], "device_id"),
        ([settings(1, colour="red")], "unknown key 'colour'; known: arrival_times, console_port"),
        ([settings(1, ports={"x": "eth0"})], "[0]"),
        ([settings(1, ports=[1])], "[0]"),
        ([settings(1), settings(1)], "two switches are named s1"),
        ([settings(1, program="/nowhere.json")], "/nowhere.json cannot be read"),
        ([settings(1, tls={"certificate": "/no.pem", "key": "/no.pem"})], "/no.pem cannot be read"),
        ([settings(1, links={"1": {"speed": 5}})], "unknown key 'speed'"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(tmp_path: Path, config: Any, message: str) -> None:
    code, error = outcome_of(tmp_path / "c.json", config)
    assert code == 1
    assert message in error
    assert len(error.strip().splitlines()) == 1, error


@pytest.mark.parametrize(
    ("bytes_", "places", "message"),
    [
        (0, (0, 0), "what is due cannot be told there"),
        (1000, (0, 0), "switch s1: arrival_times of port 4: its file of 1,000 bytes has none at 0"),
        (2 * ARRIVAL_BYTES, (0, ARRIVAL_BYTES + 8), f"has none at {ARRIVAL_BYTES + 8:,}"),
        (2 * ARRIVAL_BYTES, (-8, 0), "has none at -8"),
        (2 * ARRIVAL_BYTES, (0, 4), "has none at 4"),
    ],
)
@asynchronous
async def test_a_file_too_small_for_what_is_due_is_told(
    bytes_: int, places: tuple[int, int], message: str
) -> None:
    file = os.memfd_create("arrival_times")
    os.truncate(file, bytes_)
    switch = SwitchSettings(**settings(1, ports={4: "lo"}, arrival_times={4: places}))
    try:
        with pytest.raises(HostError, match=re.escape(message)):
            await Host([switch], arrival_times=file).start()
    finally:
        os.close(file)


@asynchronous
async def test_a_host_can_be_used_from_python(built: Built) -> None:
    switches = [
        SwitchSettings(
            name=f"s{n}",
            device_id=n,
            grpc_address="127.0.0.1:0",
            cpu_port=510,
            program=built.json,
            p4info=built.p4info,
        )
        for n in (1, 2)
    ]
    hosted = Host(switches)
    await hosted.start()
    try:
        for item in switches:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{hosted.grpc_port(item.name)}") as ch:
                request = p4r.GetForwardingPipelineConfigRequest(device_id=item.device_id)
                answer = await p4r_grpc.P4RuntimeStub(ch).GetForwardingPipelineConfig(request)
                assert answer.config.p4info == built.info
    finally:
        await hosted.stop()
        await hosted.stop()
    with pytest.raises(HostError, match="two switches"):
        await Host([switches[0], switches[0]]).start()


@asynchronous
async def test_a_program_alone_gets_an_inferred_p4info(built: Built) -> None:
    item = SwitchSettings(name="s", device_id=1, grpc_address="127.0.0.1:0", program=built.json)
    hosted = Host([item])
    await hosted.start()
    try:
        pipeline = hosted.devices["s"].entities.pipeline
        inferred = infer_p4info(pipeline.program)
        assert pipeline.symbols.info == inferred
        for kind in ("tables", "actions", "counters", "registers", "meters", "action_profiles"):
            ours = {item.preamble.id: item.preamble.alias for item in getattr(inferred, kind)}
            theirs = {item.preamble.id: item.preamble.alias for item in getattr(built.info, kind)}
            assert ours == theirs, kind
    finally:
        await hosted.stop()


@asynchronous
async def test_switches_of_one_program_keep_its_megabytes_once(built: Built) -> None:
    """And neither keeps any of what it was sent alive: that has its own copy of all of them."""
    items = [
        SwitchSettings(name=f"s{n}", device_id=n, grpc_address="127.0.0.1:0", program=built.json)
        for n in (1, 2)
    ]
    hosted = Host(items)
    await hosted.start()
    try:
        kept = [device.entities.pipeline for device in hosted.devices.values()]
        assert kept[0].device_config == Path(built.json).read_bytes()
        assert kept[0].device_config is kept[1].device_config
        assert not any(pipeline.config.p4_device_config for pipeline in kept)
        assert all(pipeline.symbols.info == pipeline.config.p4info for pipeline in kept)
    finally:
        await hosted.stop()


@pytest.mark.parametrize("ports", [1, 8, 9, 24, 64, 108, 250, 1000])
def test_rings_of_many_ports_are_less_each(ports: int) -> None:
    each = _ring_bytes(ports)
    assert each <= _ring_bytes(max(1, ports - 1))
    assert (ports < 9) == (each == dp.LARGE_RING)
    assert ports > 256 or ports * each <= max(ALL_RINGS, 8 * dp.LARGE_RING)


# TLS


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and a certificate of it for the server (at 127.0.0.1) and one for the client."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make certificates")
    folder = tmp_path_factory.mktemp("pki")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    ca = ("-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem")
    openssl("req", "-x509", *key, "-subj", "/CN=ca", "-days", "2", *ca)
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        request = f"{folder}/{name}.csr"
        openssl(
            "req", *key, "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key", "-out", request
        )
        signed = ("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-CAcreateserial")
        more = ("-days", "2", "-extfile", f"{folder}/san", "-out", f"{folder}/{name}.pem")
        openssl("x509", "-req", "-in", request, *signed, *more)
    return folder


async def ask(port: int, credentials: grpc.ChannelCredentials) -> str:
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        answer = await stub.Capabilities(p4r.CapabilitiesRequest(), timeout=LONG_S)
        return str(answer.p4runtime_api_version)


@pytest.mark.parametrize("mutual", [False, True])
def test_tls(pki: Path, mutual: bool) -> None:
    ca = (pki / "ca.pem").read_bytes()
    stranger = grpc.ssl_channel_credentials(ca)
    known = grpc.ssl_channel_credentials(
        ca, (pki / "client.key").read_bytes(), (pki / "client.pem").read_bytes()
    )
    tls = Tls(pki / "server.pem", pki / "server.key", pki / "ca.pem" if mutual else None)

    @asynchronous
    async def scenario() -> None:
        hosted = Host([SwitchSettings(name="s", device_id=1, grpc_address="127.0.0.1:0", tls=tls)])
        await hosted.start()
        try:
            port = hosted.grpc_port("s")
            assert await ask(port, known)
            if mutual:
                with pytest.raises(grpc.aio.AioRpcError):
                    await ask(port, stranger)
            else:
                assert await ask(port, stranger)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub = p4r_grpc.P4RuntimeStub(channel)
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.Capabilities(p4r.CapabilitiesRequest(), timeout=LONG_S)
        finally:
            await hosted.stop()

    scenario()


# closlab switch

CLI = ("-c", "import sys; from switch.cli import main; sys.exit(main(sys.argv[1:]))")


@contextmanager
def one_switch(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    address = f"127.0.0.1:{free_port()}"
    with process(*CLI, *words, "--", "--grpc-server-addr", address) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == f"Server listening on {address}\n"
        yield child, address


def test_one_switch_with_simple_switch_grpcs_flags(built: Built, tmp_path: Path) -> None:
    flags = ("--device-id", "3", "--nanolog", "ipc:///tmp/x", "-L", "warn", "--log-flush")
    with one_switch(*flags, str(built.json)) as (child, address):
        with grpc.insecure_channel(address) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            request = p4r.GetForwardingPipelineConfigRequest(device_id=3)
            answer = stub.GetForwardingPipelineConfig(request, timeout=LONG_S)
            assert len(answer.config.p4info.tables) == len(built.info.tables)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=LONG_S)
        assert child.returncode == 0
        assert "--nanolog is ignored" in err


def test_tls_by_simple_switch_grpcs_flags(pki: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    flags = ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
    for flag, name in (("cert", "server.pem"), ("key", "server.key"), ("cacert", "ca.pem")):
        flags += [f"--grpc-server-{flag}", str(pki / name)]
    known = grpc.ssl_channel_credentials(
        *((pki / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem"))
    )
    with process(*CLI, "--no-p4", "--", "--grpc-server-addr", address, *flags) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert asyncio.run(ask(int(address.rpartition(":")[2]), known))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "give the program's JSON, or --no-p4"),
        (["-i", "eth0", "x.json"], 2, "-i eth0: expected PORT@INTERFACE"),
        (["-i", "1@a", "-i", "1@b", "x.json"], 2, "port 1 is taken by a"),
        (["--colour", "x.json"], 2, "--colour"),
        (["x.json", "--", "--priority-queues", "9"], 2, "from 1 to 8"),
        (["x.json", "--", "--grpc-server-ssl"], 2, "needs --grpc-server-cert"),
        (["/nowhere.json", "--", "--grpc-server-addr", "127.0.0.1:0"], 1, "cannot be read"),
        (["--no-p4", "--", "--grpc-server-addr", "300.0.0.1:1"], 1, "cannot listen on 300.0.0.1:1"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], code: int, message: str) -> None:
    done = ready().run(["switch", *words], os.environ, ROOT, 60)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_both_groups_of_flags() -> None:
    done = subprocess.run(
        [sys.executable, *CLI, "--help"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert "--log-console" in done.stdout
    assert "--grpc-server-addr" in done.stdout


# The shims

COMMANDS = """\
show_tables
table_add mac forward 00:11:22:33:44:55 => 3
table_add acl drop 10.0.0.1&&&255.255.255.255 0&&&0 1->5 => 7
table_dump acl
meter_set_rates acl_meter 0 0.5:10 1:20
meter_get_rates acl_meter 0
meter_array_set_rates Forward.acl_meter 0.25:3 0.75:4
meter_get_rates Forward.acl_meter 0
meter_set_rates acl_meter 1 0.5:10 1:20
table_modify mac forward 0 5
table_dump mac
table_delete mac 0
table_num_entries mac
register_write cells 3 77
register_read cells 3
counter_read port_counter 1
mirroring_add 5 7
mirroring_get 5
mc_mgrp_create 1
mc_node_create 5 0 3
mc_node_associate 1 0
mc_dump
set_queue_depth 100
table_add mac nothing 1 => 2
nonsense
"""

ANSWERS = [
    "Forward.ipv4_lpm",
    "Entry has been added with handle 0",
    "* hdr.ipv4.src        : TERNARY   0a000001 &&& ffffffff",
    "* hdr.ipv4.len        : RANGE     0001 -> 0005",
    "Priority: 7",
    "0: info rate = 0.5, burst size = 10\n1: info rate = 1.0, burst size = 20\n",
    "0: info rate = 0.25, burst size = 3\n1: info rate = 0.75, burst size = 4\n",
    "table Forward.acl has no entry with handle 1",
    "Action entry: Forward.forward - 0005",
    "RuntimeCmd: 0\n",
    "cells[3]= 77",
    "port_counter[1]= (0 bytes, 0 packets)",
    "MirroringSessionConfig(mgid=None, port=7)",
    "  -> (L1h=0, rid=5) -> (ports=[0, 3], lags=[])",
    "Error: action nothing is unknown; there is: Forward.drop, Forward.forward, NoAction",
    "*** Unknown syntax: nonsense",
]


def test_simple_switch_cli_talks_to_a_switch(built: Built, tmp_path: Path) -> None:
    write_shims(tmp_path)
    port = str(free_port())
    with one_switch("--thrift-port", port, str(built.json)):
        done = subprocess.run(
            [str(tmp_path / "simple_switch_CLI"), "--thrift-port", port],
            input=COMMANDS,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    for answer in ANSWERS:
        assert answer in done.stdout, answer


def test_simple_switch_forwards_what_its_thrift_port_was_told(built: Built, tmp_path: Path) -> None:
    """Two of them side by side, with the flags of Mininet scripts; both without P4Runtime."""
    write_shims(tmp_path)
    words = ("--nanolog", "ipc:///tmp/x", "--debugger", "--log-file", str(tmp_path / "log"))
    with ExitStack() as stack:
        ports = [str(free_port()) for _ in range(2)]
        for number, port in enumerate(ports):
            flags = ("--device-id", str(number), "--thrift-port", port, "--pcap", str(tmp_path))
            program = ("-m", "switch.shims", "simple_switch", *flags, *words, str(built.json))
            after = ("--", "--priority-queues", "8", "--enable-swap")
            child = stack.enter_context(process(*program, *after))
            assert child.stdout is not None
            assert f"answered at port {port}" in child.stdout.readline()
        for port in ports:
            done = subprocess.run(
                [str(tmp_path / "simple_switch_CLI"), "--thrift-port", port],
                input="table_add mac forward 00:11:22:33:44:55 => 3\ntable_num_entries mac\n",
                capture_output=True,
                text=True,
                timeout=LONG_S,
                check=False,
            )
            assert "added with handle 0" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "is_grpc", "wanted"),
    [
        ("-i 1@a x.json", True, "--console-port 9090 -i 1@a x.json"),
        ("x.json --thrift-port 7 -- --cpu-port 5", True, "x.json --thrift-port 7 -- --cpu-port 5"),
        ("--thrift-port=7 x.json", False,
         "--thrift-port=7 x.json -- --grpc-server-addr 127.0.0.1:0"),
        ("x.json -- --drop-port 9", False,
         "--console-port 9090 x.json -- --drop-port 9 --grpc-server-addr 127.0.0.1:0"),
    ],
)  # fmt: skip
def test_targets_words_become_closlab_switchs(words: str, is_grpc: bool, wanted: str) -> None:
    assert switch_words(words.split(), is_grpc=is_grpc) == wanted.split()


@asynchronous
async def test_a_console_answers_when_there_is_a_program_to_ask(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for the port, as for BMv2's, may write entries then."""
    port, early = free_port(), []
    preload = host_module._preload

    async def preloading(*words: Any) -> None:
        with socket.socket() as probe:
            early.append(probe.connect_ex(("127.0.0.1", port)))
        await preload(*words)

    monkeypatch.setattr(host_module, "_preload", preloading)
    one = SwitchSettings("s1", 1, "127.0.0.1:0", program=built.json, console_port=port)
    host = Host([one])
    await host.start()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) == 0
    await host.stop()
    assert early == [errno.ECONNREFUSED]


def test_simple_switch_cli_says_when_nobody_answers(tmp_path: Path) -> None:
    write_shims(tmp_path)
    done = subprocess.run(
        [str(tmp_path / "simple_switch_CLI"), "--thrift-port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert done.returncode == 1
    assert "Could not connect" in done.stderr


def test_shims_are_executables_of_the_names_labs_call(tmp_path: Path) -> None:
    written = write_shims(tmp_path / "bin")
    assert {path.name for path in written} == set(NAMES)
    assert all(os.access(path, os.X_OK) for path in written)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (
            "--target bmv2 --arch v1model --std p4-16 -o build a/x.p4 --p4runtime-files y.txt",
            "a/x.p4 --p4runtime-files y.txt -o build/x.json",
        ),
        ("-b bmv2 x.p4", "x.p4 -o x.json"),
        ("--std=p4-16 -I inc x.p4", "-I inc x.p4 -o x.json"),
        ("--help", "--help"),
    ],
)
def test_p4cs_words_become_p4c_bm2_sss(
    words: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert driver_words(words.split()) == wanted.split()


@asynchronous
async def test_a_taken_console_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        item = SwitchSettings(name="s", device_id=1, grpc_address="127.0.0.1:0", console_port=port)
        with pytest.raises(HostError, match=f"port {port}.*--thrift-port"):
            await Host([item]).start()
        await asyncio.sleep(0)


@asynchronous
async def test_a_console_nobody_asked_for_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        item = SwitchSettings(
            name="s",
            device_id=1,
            grpc_address="127.0.0.1:0",
            console_port=port,
            needs_console=False,
        )
        hosted = Host([item])
        await hosted.start()
        await hosted.stop()
    assert f"port {port}" in caplog.text
    assert "--thrift-port" in caplog.text


def twin_actions(program: dict[str, Any]) -> None:
    """What a compiler that synthesises actions may do: one name for three, one of another shape."""
    forward = next(a for a in program["actions"] if a["name"] == "Forward.forward")
    drop = next(a for a in program["actions"] if a["name"] == "Forward.drop")
    mac = next(t for t in program["pipelines"][0]["tables"] if t["name"] == "Forward.mac")
    last = max(a["id"] for a in program["actions"])
    for number, like in enumerate((drop, forward), last + 1):
        twin = json.loads(json.dumps(like)) | {"name": "Forward.forward", "id": number}
        program["actions"].append(twin)
        mac["action_ids"].append(number)
        mac["actions"].append("Forward.forward")
        mac["next_tables"] = dict(mac["next_tables"])
    assert forward["runtime_data"] and not drop["runtime_data"]


@asynchronous
async def test_actions_of_one_name_are_told_apart_by_their_place(
    built: Built, tmp_path: Path
) -> None:
    program = json.loads(built.json.read_text())
    twin_actions(program)
    alone = tmp_path / "twins.json"
    alone.write_text(json.dumps(program))
    hosted = Host([SwitchSettings("s", 1, "127.0.0.1:0", program=alone)])
    await hosted.start()
    try:
        pipeline = hosted.devices["s"].entities.pipeline
        mac = next(t for t in pipeline.symbols.info.tables if t.preamble.name == "Forward.mac")
        names = {a.preamble.id: a for a in pipeline.symbols.info.actions}
        found = [names[ref.id] for ref in mac.action_refs]
        assert len({action.preamble.id for action in found}) == len(found)
        of_one_name = [a for a in found if a.preamble.name.split("#")[0] == "Forward.forward"]
        assert [len(a.params) for a in of_one_name] == [1, 0, 1]
        # What the control plane calls by its plain name is the one it would be in the source.
        assert of_one_name[0].preamble.name == "Forward.forward"
        binding = pipeline.tables[mac.preamble.id]
        for action, index in zip(found, binding.info.actions, strict=True):
            params = [p4r.Action.Param(param_id=p.id, value=b"\1") for p in action.params]
            call = p4r.Action(action_id=action.preamble.id, params=params)
            assert binding.actions.decode(call)[0] == index
    finally:
        await hosted.stop()
