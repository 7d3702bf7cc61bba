"""Inference in two places: some ranks read prompts, others write the answers.

Requests arrive at random. A prompt is read (prefill) by whichever of the first ranks is free
soonest, layer by layer; what it has made of a part of the layers, keys and values of every token
(the KV cache), moves on to the rank that is to write the answer (decode) while the next part is
computed. An answer begins when all of it has come. Ranks that decode serve many requests at once,
and are chosen by how many they have.

Endpoints have to know before a run who does what, so the choice is made on estimates: a cache moves
as on a fabric that never blocks. When things happen is the run's.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Annotated, Literal

from pydantic import Field

from params.data import Data
from params.units import DurationNs, Size
from traffic.collectives import Activity, RankError, Schedule, ScheduleBuilder, Site
from traffic.collectives.collective import Even
from traffic.jobs.job import Job, Threads

Tokens = Annotated[int, Field(ge=1, le=10**6)]


class Request(Data):
    """One request, as the schedule has it."""

    arrives_ns: int
    prompt: int  # tokens
    answer: int
    prefill: int  # ranks
    decode: int
    first_token: int  # the work that ends when the answer begins, by its number in the schedule
    last_token: int

    def moved(self, by: int) -> Request:
        """The same in a schedule that has so many transfers before."""
        return replace(self, first_token=self.first_token + by, last_token=self.last_token + by)


class InferenceJob(Job):
    """Requests that are read by some ranks and answered by others, with KV caches between them."""

    kind: Literal["inference"] = "inference"
    prefill: int = Field(default=1, ge=1, le=65535)
    """How many ranks read prompts: the first ones."""
    decode: int = Field(default=1, ge=1, le=65535)
    """How many ranks write answers."""
    requests: int = Field(default=16, ge=1, le=100_000)
    """How many requests come,"""
    every_ns: DurationNs = Field(ge=1, le=10**12)
    """one in so long, on average; they arrive at random."""
    prompt_tokens: Tokens = 1024
    """Tokens of a prompt, on average; a request has from half to one and a half times as many."""
    answer_tokens: Tokens = 128
    """Tokens of an answer, likewise."""
    prefill_ns: DurationNs = Field(ge=0, le=10**12)
    """How long a token of a prompt takes to be read."""
    decode_ns: DurationNs = Field(default=0, ge=0, le=10**12)
    """How long a token of an answer takes to be written."""
    kv_bytes: Size = Field(default=327_680, ge=1, le=10**9)
    """What a token leaves in the cache: 327,680 is Llama 70B's 80 layers of 8 heads in 16 bits."""
    pieces: int = Field(default=4, ge=1, le=1000)
    """In how many parts a cache moves on, each as soon as its layers are computed."""

    def size(self, _: Site) -> int:
        """How many ranks it has."""
        return self.prefill + self.decode

    def schedule(self, ranks: int, seed: int, rate_gbps: float) -> tuple[Schedule, list[Request]]:
        """The job's schedule, by rank, and its requests."""
        self.check_ranks(ranks)
        if self.steps > 1:
            raise RankError(
                f"{self.name}: inference has no steps", "say how many requests there are"
            )
        chance = Random(seed)  # noqa: S311  (an experiment's chance, not a secret)
        builder = ScheduleBuilder(ranks)
        threads = Threads(builder, self.name, self.slowdowns())
        waiting = builder.activity(Activity("wait", "requests arrive"))
        free = [0.0] * self.prefill
        busy: list[list[float]] = [[] for _ in range(self.decode)]  # when each answer is over
        done = [0] * self.decode  # tokens, whatever has been over since
        found = []
        now = 0.0
        for number in range(self.requests):
            now += chance.expovariate(1 / self.every_ns)
            prompt, answer = (
                max(1, round(mean * chance.uniform(0.5, 1.5)))
                for mean in (self.prompt_tokens, self.answer_tokens)
            )
            reader = min(range(self.prefill), key=lambda at: (max(free[at], now), at))
            free[reader] = max(free[reader], now) + prompt * self.prefill_ns
            moved = free[reader] + prompt * self.kv_bytes * 8 / rate_gbps / self.pieces
            for ends in busy:
                ends[:] = [end for end in ends if end > moved]
            writer = min(range(self.decode), key=lambda at: (len(busy[at]), done[at], at))
            done[writer] += answer
            busy[writer].append(moved + answer * self.decode_ns)
            threads.begin_step(number)
            arrival = builder.work(reader, round(now), activity=waiting)
            tokens = self._serve(threads, arrival, (reader, self.prefill + writer), prompt, answer)
            found.append(
                Request(round(now), prompt, answer, reader, self.prefill + writer, *tokens)
            )
        return builder.build(), found

    def _serve(
        self, threads: Threads, arrival: int, ranks: tuple[int, int], prompt: int, answer: int
    ) -> tuple[int, int]:
        """A request from its prompt to its last token; what ends with its first and its last."""
        builder, (reader, writer), number = threads.builder, ranks, threads.step
        moving = builder.activity(Activity("flows", "kv cache", job=self.name, step=number))
        parts = Even(prompt * self.kv_bytes, self.pieces)
        arrived = []
        for piece in range(self.pieces):
            computed = threads.compute(
                reader, prompt * self.prefill_ns / self.pieces, also=[arrival] if not piece else []
            )
            size = parts.bytes(piece, 1)
            if size:
                arrived.append(
                    builder.transfer(reader, writer, size, activity=moving, after=[computed])
                )
        begin = threads.compute_beside(writer, 0, arrived)
        return begin, threads.compute_beside(writer, answer * self.decode_ns, [begin])
