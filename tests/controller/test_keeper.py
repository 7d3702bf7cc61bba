"""A fabric is installed, kept and repaired, over real P4Runtime."""

import asyncio
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from finsy import p4client
from finsy.proto import p4r, p4r_grpc

from controller import (
    ControllerError,
    Keeper,
    LoadBalancing,
    Policy,
    Report,
    Settings,
    Telemetry,
    Tls,
    install,
    read_counts,
    switch_plans,
)
from controller.client import ANSWER_S, connected, read_plan, reconcile
from controller.entities import Changes, SwitchPlan, changes, entry
from controller.wire import canonical
from switch import host as switch_host
from tests.controller.conftest import CPU_PORT, asynchronous, switches, targets_of
from topologies import fat_tree, leaf_spine

Program = tuple[Path, Path]
EVERYTHING = Settings(
    lb=LoadBalancing(Policy.CONGA),
    telemetry=Telemetry(share=0.5, drop_share=0.5, report_port=1),
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
        assert await asyncio.to_thread(read_counts, targets)


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


class Watched:
    """What a keeper told its switches."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Changes]] = []

    def __call__(self, name: str, changed: Changes) -> None:
        if len(changed):
            self.told.append((name, changed))

    def take(self) -> dict[str, int]:
        sums: dict[str, int] = {}
        for name, changed in self.told:
            sums[name] = sums.get(name, 0) + len(changed)
        self.told.clear()
        return sums


async def until(what: str, condition: object, timeout_s: float = 20.0) -> None:
    assert callable(condition)
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"in vain waited until {what}")


@asynchronous
async def test_a_dead_cable_is_gone_round_and_taken_back(program: Program) -> None:
    fabric = leaf_spine(3, 2, 1)
    told = Watched()
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        async with Keeper(fabric, targets, interval_s=0.02, on_change=told) as keeper:
            await keeper.settled()
            assert set(told.take()) == {node.name for node in fabric.switches}
            leaf1, spine1 = fabric.node("leaf1"), fabric.node("spine1")
            port = fabric.port_towards(leaf1, spine1)
            host.devices["leaf1"].plane.set_port_up(port, False)
            await until("the cable is known dead", lambda: keeper.dead == {"leaf1-spine1"})
            await keeper.settled()
            # The other leaves must not send through spine1 what is for leaf1, and only that.
            changed = told.take()
            assert set(changed) == {"leaf1", "leaf2", "leaf3", "spine1"}
            assert changed["leaf2"] == changed["leaf3"] <= 2
            host.devices["leaf1"].plane.set_port_up(port, True)
            await until("the cable is back", lambda: not keeper.dead)
            await keeper.settled()
            for target in targets:
                async with connected(target) as switch:
                    wanted = canonical(switch_plans(fabric)[target.name], switch.p4info)
                    assert len(changes(await read_plan(switch, wanted), wanted)) == 0


@asynchronous
async def test_a_switch_that_lost_its_state_gets_it_back(program: Program) -> None:
    fabric = leaf_spine(2, 1, 1)
    told = Watched()
    async with switches(fabric) as (_, addresses):
        pass  # the addresses are free again, and known
    async with switches(fabric, addresses):
        targets = targets_of(fabric, addresses, program)
        keeper = Keeper(fabric, targets, interval_s=0.02, on_change=told)
        await keeper.__aenter__()
        await keeper.settled()
        told.take()
    try:
        async with switches(fabric, addresses):
            await until(
                "all switches are told anew",
                lambda: {name for name, _ in told.told} == {n.name for n in fabric.switches},
            )
            await keeper.settled()
            for target in targets:
                async with connected(target) as switch:
                    wanted = canonical(switch_plans(fabric)[target.name], switch.p4info)
                    assert set(await read_plan(switch, wanted)) == set(wanted)
    finally:
        await keeper.__aexit__(None, None, None)


@asynchronous
async def test_other_settings_change_what_they_are_about(program: Program) -> None:
    fabric = fat_tree(2)
    told = Watched()
    async with (
        switches(fabric) as (_, addresses),
        Keeper(
            fabric, targets_of(fabric, addresses, program), interval_s=0.05, on_change=told
        ) as keeper,
    ):
        await keeper.settled()
        told.take()
        await keeper.change(Settings(lb=LoadBalancing(Policy.SPRAY)))
        await keeper.settled()
        assert told.take() == {node.name: 8 for node in fabric.switches}


@asynchronous
async def test_counters_become_time_series(program: Program, tmp_path: Path) -> None:
    fabric = leaf_spine(1, 1, 2)
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        async with Keeper(fabric, targets, interval_s=0.02) as keeper:
            await keeper.settled()
            plane = host.devices["leaf1"].plane
            for turn in range(1, 4):
                for n in range(10):
                    plane.inject(1, bytes(60), 10 * turn + n)
                await until(
                    "they are counted",
                    lambda all_=10 * turn: (
                        [v for _, v in keeper.series.of("leaf1", "dropped", 2)][-1:] == [all_]
                    ),
                )
        story = keeper.series.of("leaf1", "dropped", 2)
        assert story[-1][1] == 30
        assert len(story) >= 3
        assert [value for _, value in story] == sorted(value for _, value in story)
        assert keeper.series.of("leaf1", "received", 1)[-1][1] == 30
        keeper.series.save(tmp_path / "series.csv")
        lines = (tmp_path / "series.csv").read_text().splitlines()
        assert lines[0] == "time_s,switch,name,index,value"
        assert len(lines) == len(keeper.series.samples) + 1


@asynchronous
async def test_reports_to_the_cpu_port_are_collected(program: Program) -> None:
    fabric = leaf_spine(1, 1, 2)
    settings = Settings(telemetry=Telemetry(drop_share=1.0, report_port=CPU_PORT))
    reports: list[Report] = []
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        async with Keeper(fabric, targets, settings, on_report=reports.append) as keeper:
            await keeper.settled()
            host.devices["leaf1"].plane.inject(1, bytes(60), 0)
            await until("the report is there", lambda: reports)
    assert (reports[0].node, reports[0].drop_reason) == (1 << 16 | 1, 2)
    assert reports[0].packet == bytes(60)


@asynchronous
async def test_a_switch_that_does_not_run_is_named(program: Program) -> None:
    fabric = leaf_spine(1, 1, 1)
    async with switches(fabric) as (_, addresses):
        pass
    async with Keeper(fabric, targets_of(fabric, addresses, program)) as keeper:
        with pytest.raises(ControllerError, match="leaf1, spine1"):
            await keeper.settled(timeout_s=0.5)


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
        async with Keeper(fabric, trusting) as keeper:
            await keeper.settled()
        in_the_clear = targets_of(fabric, addresses, program)
        async with Keeper(fabric, in_the_clear) as keeper:
            with pytest.raises(ControllerError, match="still lack their plan"):
                await keeper.settled(timeout_s=1)


class _Sluggish(p4r_grpc.P4RuntimeServicer):
    """A switch whose processor is so slow that it seems to say nothing."""

    async def Capabilities(self, _request: object, _context: object) -> object:  # noqa: N802
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
        p4r_grpc.add_P4RuntimeServicer_to_server(_Sluggish(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        addresses.update({switch.name: f"127.0.0.1:{port}" for switch in fabric.switches})
        ready.set()
        await asyncio.to_thread(over.wait)
        await server.stop(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(30)
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
