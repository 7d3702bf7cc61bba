"""Switches are told their plans, and what is wrong is put right, over real P4Runtime."""

import asyncio
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import finsy as fy
import grpc
import pytest
from finsy import p4client
from finsy.log import LOGGER
from finsy.proto import p4r, p4r_grpc

from controller import ControllerError, Settings, Tls, client, install, switch_plans
from controller.client import ANSWER_S, connected, read_plan, reading, reconcile
from controller.entities import SwitchPlan, entry
from controller.settings import HopTelemetry
from controller.wire import canonical
from params.load_balancing import LoadBalancing, Policy
from switch import host as switch_host
from tests.controller.conftest import asynchronous, switches, targets_of
from tests.waiting import LONG_S
from topologies import leaf_spine

Program = tuple[Path, Path]
EVERYTHING = Settings(
    lb=LoadBalancing(policy=Policy.CONGA),
    telemetry=HopTelemetry(share=0.5, drop_share=0.5, report_port=1),
    tenants={"h1": 1, "h2": 2},
)


@asynchronous
async def test_what_is_installed_is_read_back_to_the_last_value(program: Program) -> None:
    fabric = leaf_spine(2, 2, 2)
    async with switches(fabric) as (_, addresses):
        plans = switch_plans(fabric, EVERYTHING)
        for target in targets_of(fabric, addresses, program):
            async with connected(target) as switch:
                first = await reconcile(switch, plans[target.name])
                assert len(first) > 50
                wanted = canonical(plans[target.name], switch.p4info)
                assert set(await read_plan(switch, wanted)) == set(wanted)
                assert len(await reconcile(switch, plans[target.name])) == 0


@asynchronous
async def test_a_controller_that_comes_again_changes_nothing_that_is_right(
    program: Program,
) -> None:
    fabric = leaf_spine(2, 1, 1)
    async with switches(fabric) as (_, addresses):
        targets = targets_of(fabric, addresses, program)
        plans = switch_plans(fabric)
        first = await asyncio.to_thread(install, targets, plans)
        again = await asyncio.to_thread(install, targets, plans)
        assert all(first.values())
        assert not any(again.values())


@asynchronous
async def test_what_is_wrong_is_repaired_and_nothing_else(program: Program) -> None:
    fabric = leaf_spine(2, 2, 1)
    async with switches(fabric) as (_, addresses):
        target = targets_of(fabric, addresses, program)[0]
        plan = switch_plans(fabric, EVERYTHING)[target.name]
        missing = plan[0]
        wrong = next(e for e in plan if getattr(e, "table", "") == "ecn_profiles")
        stray = entry("ipv4_routes", {"hdr.ipv4.dst_addr": (0x0B000000, 8)}, "no_route")
        spoilt: SwitchPlan = (
            *(e for e in plan if e not in (missing, wrong)),
            replace(wrong, params=(("queue_min", 1), ("queue_max", 2), ("gradient", 3))),
            stray,
        )
        async with connected(target) as switch:
            await reconcile(switch, spoilt)
            repaired = await reconcile(switch, plan)
            assert [len(part) for part in (repaired.add, repaired.change, repaired.remove)] == [
                1,
                1,
                1,
            ]
            wanted = canonical(plan, switch.p4info)
            assert set(await read_plan(switch, wanted)) == set(wanted)


@asynchronous
async def test_who_comes_while_one_before_is_still_leaving_may_write(program: Program) -> None:
    """One that only reads need not wait for it, and another that stays is told of."""
    fabric = leaf_spine(2, 1, 1)
    async with switches(fabric) as (_, addresses):
        target = targets_of(fabric, addresses, program)[0]
        plan = switch_plans(fabric)[target.name]

        async def come() -> int:
            async with connected(target) as switch:
                return len(await reconcile(switch, plan))

        async with connected(target):
            coming = asyncio.ensure_future(come())
            await asyncio.wait({coming}, timeout=0.5)  # time to bid, and to be told no
            async with reading(target) as reader:
                assert not reader.is_primary
                assert await read_plan(reader) == ()
            assert not coming.done()
        assert await coming > 20

        async with connected(target):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(client, "PRIMARY_S", 0.1)
                with pytest.raises(fy.P4ClientError, match="election id 9 is not primary"):
                    async with connected(target) as backup:
                        await reconcile(backup, ())


@asynchronous
async def test_tls(program: Program, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: there is nothing to make certificates with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    fabric = leaf_spine(1, 1, 1)
    served = switch_host.Tls(certificate, key)
    async with switches(fabric, tls=served) as (_, addresses):
        trusting = targets_of(fabric, addresses, program, Tls(certificate))
        plans = switch_plans(fabric)
        assert all((await asyncio.to_thread(install, trusting, plans)).values())
        in_the_clear = targets_of(fabric, addresses, program)
        with pytest.raises(ControllerError, match=r"(leaf|spine)1 at "):
            await asyncio.to_thread(install, in_the_clear, plans)


class _Sluggish(p4r_grpc.P4RuntimeServicer):
    """A switch whose processor is so slow that it seems to say nothing."""

    async def Capabilities(  # type: ignore[override]  # noqa: N802
        self, _request: object, _context: object
    ) -> object:
        await asyncio.sleep(5)
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")


@pytest.mark.parametrize(("call_s", "answer_s"), [(0.3, 4.0), (60.0, 0.5)])
def test_a_switch_too_slow_to_answer_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch, call_s: float, answer_s: float
) -> None:
    """Whether a call's time is up, of which finsy tells by cancelling, or that of all of them."""
    monkeypatch.setattr(p4client, "_DEFAULT_RPC_TIMEOUT", call_s)
    fabric = leaf_spine(1, 1, 1)
    ready, over = threading.Event(), threading.Event()
    addresses: dict[str, str] = {}

    async def serve() -> None:
        server = grpc.aio.server()
        switch = _Sluggish()  # type: ignore[abstract]
        p4r_grpc.add_P4RuntimeServicer_to_server(switch, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        addresses.update({switch.name: f"127.0.0.1:{port}" for switch in fabric.switches})
        ready.set()
        await asyncio.to_thread(over.wait)
        await server.stop(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(LONG_S)
        with pytest.raises(ControllerError, match=r"(leaf|spine)1 at 127\.0\.0\.1"):
            install(
                targets_of(fabric, addresses, program),
                switch_plans(fabric, Settings()),
                answer_s=answer_s,
            )
    finally:
        over.set()
        thread.join()


def test_calls_may_take_as_long_as_all_of_them() -> None:
    assert p4client._DEFAULT_RPC_TIMEOUT > 10 * ANSWER_S


@pytest.mark.parametrize(
    ("code", "count"), [(grpc.StatusCode.CANCELLED, 0), (grpc.StatusCode.INTERNAL, 1)]
)
def test_what_fails_in_finsy_is_told_without_a_traceback(
    caplog: pytest.LogCaptureFixture, code: grpc.StatusCode, count: int
) -> None:
    """And what was only broken off, since somebody interrupted us, is not told at all."""
    failed = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())
    LOGGER.critical("task %r failed", "x", exc_info=fy.P4ClientError(failed, "send"))
    assert "Traceback" not in caplog.text
    assert caplog.text.count("task 'x' failed: operation=send code=") == count
