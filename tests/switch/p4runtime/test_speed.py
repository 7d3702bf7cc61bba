"""How fast entries go in over gRPC: a sweep of its own, with figures on stdout.

The bound is on the switch's processor time, which other work on the machine does not change; the
rate a client sees on an idle machine of two cores is about the same.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from lab.machine.speed import processor_slowness

from .rig import ROOT, Built, Names, entity_of, exact, lpm, update
from .test_host import cpu_seconds, settings

ENTRIES = 100_000
BATCH = 1_000
WANTED_PER_S = 20_000

pytestmark = pytest.mark.slow


@contextmanager
def hosted(folder: Path) -> Iterator[tuple[str, int]]:
    """A switch in a process of its own."""
    switch = settings(7)
    config = folder / "switch.json"
    config.write_text(json.dumps([switch]))
    words = [sys.executable, "-m", "switch.host", str(config)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield switch["grpc_address"], child.pid
        child.send_signal(signal.SIGTERM)


def batches(updates: list[p4r.Update]) -> list[p4r.WriteRequest]:
    election = p4r.Uint128(low=1)
    return [
        p4r.WriteRequest(device_id=7, election_id=election, updates=updates[i : i + BATCH])
        for i in range(0, len(updates), BATCH)
    ]


@pytest.mark.parametrize("table", ["mac", "ipv4_lpm"])
def test_a_hundred_thousand_entries(built: Built, names: Names, tmp_path: Path, table: str) -> None:
    if table == "mac":
        action = names.action("forward", port=3)
        entries = [names.entry(table, exact(1, n), action=action) for n in range(ENTRIES)]
    else:
        action = names.action("count_route", port=3, dst=5)
        entries = [names.entry(table, lpm(1, n << 8, 24), action=action) for n in range(ENTRIES)]
    with hosted(tmp_path) as (address, pid), grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        bid = p4r.MasterArbitrationUpdate(device_id=7, election_id=p4r.Uint128(low=1))
        forever = stub.StreamChannel(iter_then_wait(p4r.StreamMessageRequest(arbitration=bid)))
        next(forever)
        action_of = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=7, election_id=bid.election_id, action=action_of, config=built.config
            )
        )
        figures = {}

        @contextmanager
        def measured(what: str) -> Iterator[None]:
            began, used = time.monotonic(), cpu_seconds(pid)
            yield
            seen, own = time.monotonic() - began, cpu_seconds(pid) - used
            figures[what] = (ENTRIES / seen, ENTRIES / own)

        for verb in ("INSERT", "DELETE"):
            requests = batches([update(verb, entry) for entry in entries])
            with measured(verb):
                for request in requests:
                    stub.Write(request)
            if verb == "INSERT":
                with measured("READ"):
                    query = p4r.ReadRequest(device_id=7, entities=[entity_of(names.entry(table))])
                    found = sum(len(answer.entities) for answer in stub.Read(query))
                assert found == ENTRIES
        forever.cancel()
    for verb, (seen, own) in figures.items():
        print(f"{table} {verb}: {seen:,.0f}/s, {own:,.0f} per second of the switch's core")
    assert figures["INSERT"][1] >= WANTED_PER_S / processor_slowness()


def iter_then_wait(message: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    """A request stream that stays open."""
    yield message
    time.sleep(600)
