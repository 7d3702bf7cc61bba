"""P4Runtime of a run by mutual TLS: who shows nothing, or another run's certificate, is refused."""

from __future__ import annotations

import itertools
import json
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from lab.commands.shell import shell_command
from lab.engines import RunOptions
from lab.engines.mininet.running import RunningLab
from lab.errors import MissingTool, RunError
from lab.machine.certificates import Certificates, made
from lab.machine.program import build
from lab.runs.run import check
from switch.host import Host, SwitchSettings, Tls
from tests.lab.conftest import closlab
from tests.switch.p4runtime.rig import asynchronous
from tests.waiting import LONG_S

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not there")


def shown(of: Certificates, trusted: Certificates, whose: str | None) -> grpc.ChannelCredentials:
    """What a client trusts and shows."""
    authority = trusted.authority.read_bytes()
    if whose is None:
        return grpc.ssl_channel_credentials(authority)
    pair = of.key(whose).read_bytes(), of.certificate(whose).read_bytes()
    return grpc.ssl_channel_credentials(authority, *pair)


def tls_of(of: Certificates) -> Tls:
    return Tls(of.certificate("switches"), of.key("switches"), of.authority)


@needs_openssl
def test_only_the_controller_of_this_run_is_heard() -> None:
    @asynchronous
    async def scenario() -> None:
        with made() as ours, made() as others:
            settings = SwitchSettings("s", 1, "127.0.0.1:0", tls=tls_of(ours))
            hosted = Host([settings])
            await hosted.start()
            try:
                place = f"127.0.0.1:{hosted.grpc_port('s')}"
                channels = {
                    "ours": grpc.aio.secure_channel(place, shown(ours, ours, "controller")),
                    "operator": grpc.aio.secure_channel(place, shown(ours, ours, "operator")),
                    "nothing": grpc.aio.secure_channel(place, shown(ours, ours, None)),
                    "another's": grpc.aio.secure_channel(place, shown(others, ours, "controller")),
                    "who trusts another": grpc.aio.secure_channel(
                        place, shown(ours, others, "controller")
                    ),
                    "plain": grpc.aio.insecure_channel(place),
                }
                heard = {}
                for name, channel in channels.items():
                    async with channel:
                        call = p4r_grpc.P4RuntimeStub(channel).Capabilities
                        try:
                            await call(p4r.CapabilitiesRequest(), timeout=LONG_S)
                            heard[name] = "heard"
                        except grpc.aio.AioRpcError as error:
                            heard[name] = error.code().name
                assert {heard.pop("ours"), heard.pop("operator")} == {"heard"}
                assert set(heard.values()) == {"UNAVAILABLE"}, heard
            finally:
                await hosted.stop()

    scenario()


@needs_openssl
def test_who_may_only_read_cannot_write(tmp_path: Path) -> None:
    """A second client beside the primary, over TLS: it reads all and changes nothing."""

    @asynchronous
    async def scenario() -> None:
        built = build(tmp_path)
        with made() as ours:
            settings = SwitchSettings(
                "s", 1, "127.0.0.1:0", tls=tls_of(ours), program=built.json, p4info=built.p4info
            )
            hosted = Host([settings])
            await hosted.start()
            try:
                place = f"127.0.0.1:{hosted.grpc_port('s')}"
                credentials = shown(ours, ours, "controller")
                async with grpc.aio.secure_channel(place, credentials) as channel:
                    stub = p4r_grpc.P4RuntimeStub(channel)
                    primary, backup = stub.StreamChannel(), stub.StreamChannel()
                    for stream, number in ((primary, 9), (backup, 5)):
                        bid = p4r.StreamMessageRequest()
                        bid.arbitration.device_id = 1
                        bid.arbitration.election_id.low = number
                        await stream.write(bid)
                        await stream.read()
                    asked = p4r.ReadRequest(device_id=1)
                    asked.entities.add().table_entry.SetInParent()
                    async for _ in stub.Read(asked):
                        pass
                    group = p4r.MulticastGroupEntry(multicast_group_id=7)
                    entity = p4r.Entity(
                        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                            multicast_group_entry=group
                        )
                    )
                    update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
                    refused = {}
                    for low in (0, 5, 9):
                        write = p4r.WriteRequest(device_id=1, updates=[update])
                        if low:
                            write.election_id.low = low
                        pipeline = p4r.SetForwardingPipelineConfigRequest(
                            device_id=1, action=3, election_id=write.election_id
                        )
                        for name, call, request in (
                            ("pipeline", stub.SetForwardingPipelineConfig, pipeline),
                            ("write", stub.Write, write),
                        ):
                            try:
                                await call(request, timeout=LONG_S)
                                refused[low, name] = "done"
                            except grpc.aio.AioRpcError as error:
                                refused[low, name] = error.code().name
                    assert refused == {
                        (0, "write"): "PERMISSION_DENIED",
                        (0, "pipeline"): "PERMISSION_DENIED",
                        (5, "write"): "PERMISSION_DENIED",
                        (5, "pipeline"): "PERMISSION_DENIED",
                        (9, "write"): "done",
                        (9, "pipeline"): "INVALID_ARGUMENT",  # it lacks its config
                    }
            finally:
                await hosted.stop()

    scenario()


@needs_openssl
def test_a_shell_shows_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setattr("lab.commands.shell.SHELL_ENVIRONMENT", tmp_path)
    lab = RunningLab("x", 1, {}, {"leaf1": ("127.0.0.1:9", 1)}, {}, {})
    with made() as ours:
        command = shell_command(replace(lab, certificates=ours), "leaf1", [])
        options = dict(itertools.pairwise(command))
        assert options["--cert"] == str(ours.certificate("operator"))
        assert options["--private-key"] == str(ours.key("operator"))
        assert options["--cacert"] == str(ours.authority)
        assert "--ssl" in command
    assert "--ssl" not in shell_command(lab, "leaf1", [])


@needs_openssl
def test_certificates_are_for_one_run_and_its_owner() -> None:
    with made() as ours:
        folder = ours.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert not ours.key("authority").exists()  # nobody signs any more
        assert "PRIVATE KEY" in ours.key("switches").read_text()
    assert not folder.exists()


def test_without_openssl_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match="openssl"), made():
        pass


def test_the_simulator_has_no_wire_to_protect() -> None:
    with pytest.raises(RunError, match="one process"):
        check(RunOptions(out=Path(), engine="sim", tls=True))


@pytest.mark.slow
@needs_openssl
@pytest.mark.mininet
@pytest.mark.clock
def test_a_run_by_tls(tmp_path: Path) -> None:
    change = "traffic={kind: incast, senders: 3, bytes: 50KB}"
    done = closlab("run", "hello", "--tls", "--set", change, "--out", str(tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["flows"]["failed"] == 0, done.stderr
    assert json.loads((tmp_path / "switches.json").read_text())[0]["tls"]["client_ca"]
    assert not Path(json.loads((tmp_path / "switches.json").read_text())[0]["tls"]["key"]).exists()
