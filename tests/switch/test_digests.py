"""Digests against a model of what they promise, and that many outstanding ones cost nothing."""

import random
import time
from dataclasses import field
from typing import Any

import pytest

from params.data import Data
from switch.dataplane import DigestAck, DigestList, DigestWrite, Verb
from tests.switch.test_externs import load, send


class Model(Data, frozen=False):
    """Lists in order, each with what it holds and until when that is not told again."""

    most: int
    timeout_ns: int
    ack_ns: int
    filling: list[int] = field(default_factory=list)
    first_ns: int = 0
    waiting: dict[int, tuple[set[int], int]] = field(default_factory=dict)
    lists: list[list[int]] = field(default_factory=list)

    def sample(self, key: int, now: int) -> None:
        known = {k for keys, until in self.waiting.values() if until > now for k in keys}
        if key not in known and key not in self.filling:
            self.first_ns = self.first_ns if self.filling else now
            self.filling.append(key)
            if len(self.filling) == self.most:
                self._send(now)

    def service(self, now: int) -> None:
        if self.filling and self.first_ns + self.timeout_ns <= now:
            self._send(now)

    def _send(self, now: int) -> None:
        self.waiting[len(self.lists)] = set(self.filling), now + self.ack_ns
        self.lists.append(self.filling)
        self.filling = []


@pytest.mark.parametrize("seed", range(12))
def test_what_is_told_is_what_the_model_tells(seed: int) -> None:
    draw = random.Random(seed)
    model = Model(draw.randrange(1, 6), draw.choice((50, 1000)), draw.choice((100, 3000)))
    with load() as switch:
        config = (model.timeout_ns, model.most, model.ack_ns)
        assert switch.write([DigestWrite(Verb.INSERT, 0, *config)]) == [None]
        now = 1
        lists: list[Any] = []
        for _ in range(400):
            now += draw.randrange(1, 60)
            model.service(now)
            switch.service(now)
            if lists and draw.random() < 0.1:
                number = draw.randrange(len(lists))
                model.waiting.pop(number, None)
                switch.write([DigestAck(0, lists[number].list_id)])
            else:
                key = draw.randrange(24)
                model.sample(key, now)
                send(switch, key, now=now)
            lists += [event for event in switch.drain() if isinstance(event, DigestList)]
    assert [[sample[0] for sample in each.samples] for each in lists] == model.lists
    assert len(model.lists) > 20


@pytest.mark.slow
@pytest.mark.clock
def test_many_that_nobody_acknowledges_cost_later_packets_nothing() -> None:
    def took_s(outstanding: int) -> float:
        with load() as switch:
            config = DigestWrite(Verb.INSERT, 0, 10**9, 1000, 10**15)
            assert switch.write([config]) == [None]
            for key in range(outstanding):
                send(switch, key % 2**16, flow=key >> 16, now=1)
                if key % 1000 == 999:
                    switch.drain()
            began = time.thread_time()
            for _ in range(2000):
                send(switch, 0, now=2)
            return time.thread_time() - began

    assert min(took_s(50_000) for _ in range(3)) < 2 * min(took_s(10) for _ in range(3))
