"""A mixture of experts whose tokens do not spread evenly: hot experts, and who waits for them.

In each layer every rank sends its tokens to the ranks of the experts that are to serve them, these
compute, and send back what came of it. Who is wanted more than others is drawn anew for every
layer: the k-th most wanted of the experts gets 1/k^skew of what the first gets, and none more than
all tokens, for it serves a token once. Or every token chooses by lot, those more wanted more often:
then ranks get more or less also where all experts are wanted alike. So the rank of a hot expert is
written to by all at once, and computes longer than the others; and a layer ends when the last of
its tokens is back.
"""

from __future__ import annotations

from heapq import nlargest
from random import Random
from typing import Annotated, Literal

from pydantic import Field

from params.quantity import summed
from params.units import DurationNs, Size
from traffic.collectives import Activity, RankError, Schedule, ScheduleBuilder, Site
from traffic.jobs.job import Job, Threads

_MAX_DRAWS = 10**8


class ExpertsJob(Job):
    """Layers of a mixture of experts, some of which more tokens want than others."""

    kind: Literal["experts"] = "experts"
    ranks: Annotated[int, Field(ge=2)] | None = None
    """How many; without it one on every host."""
    experts: Annotated[int, Field(ge=2, le=4096)] | None = None
    """How many there are in a layer, as many on every rank; without it one a rank."""
    active: int = Field(default=2, ge=1, le=4096)
    """How many of them serve a token."""
    layers: int = Field(default=1, ge=1, le=1000)
    """How many a step goes through."""
    tokens: int = Field(ge=1, le=10**7)
    """Of each rank, in each layer."""
    token_bytes: Size = Field(default=8192, ge=1, le=10**6)
    """What one takes on its way, there and back: 8,192 is 4,096 values of 16 bits."""
    combine_bytes: Annotated[Size, Field(ge=1, le=10**6)] | None = None
    """What one takes on its way back, if that differs: there 8 bits a value, say, and back 16."""
    compute_ns: Annotated[DurationNs, Field(ge=0, le=10**15)]
    """How long a rank computes in a layer whose experts get an even share of the tokens."""
    skew: float = Field(default=0.0, ge=0, le=10)
    """0: all experts get the same; 1: the second most wanted gets half as much as the first."""
    choices: Literal["shares", "lot"] = "shares"
    """Experts get their exact shares of each rank's tokens; or every token chooses by lot."""
    node: int = Field(default=1, ge=1, le=4096)
    """So many ranks in a row are of one node: their tokens for each other cross no fabric."""

    def size(self, site: Site) -> int:
        """How many ranks it has on a site of its own."""
        return site.hosts if self.ranks is None else self.ranks

    def schedule(self, ranks: int, seed: int) -> Schedule:
        """The job's schedule, by rank."""
        self.check_ranks(ranks)
        experts = ranks if self.experts is None else self.experts
        if experts % ranks or self.active > experts:
            raise RankError(
                f"{self.name}: {experts} experts, {self.active} of them active, on {ranks} ranks",
                "let every rank have as many experts, and no more be active than there are",
            )
        if self.choices == "lot" and self.layers * ranks * self.tokens * experts > _MAX_DRAWS:
            raise RankError(
                f"{self.name}: {self.tokens} tokens of each of {ranks} ranks choose by lot among "
                f"{experts} experts",
                f"let layers, ranks, tokens and experts multiply to {_MAX_DRAWS:,} at most, or "
                "leave choices at shares",
            )
        chance = Random(seed)  # noqa: S311  (an experiment's chance, not a secret)
        builder = ScheduleBuilder(ranks)
        threads = Threads(builder, self.name, self.slowdowns())
        there, back = threads.reserve_channels(1), threads.reserve_channels(1)
        for step in range(self.steps):
            threads.begin_step(step)
            ways = [
                builder.activity(Activity("flows", name, job=self.name, step=step))
                for name in ("dispatch", "combine")
            ]
            for _ in range(self.layers):
                shares = wanted(experts, self.active, self.skew, chance)
                tokens = self._chosen(shares, ranks, chance)
                sent = self._send(threads, tokens, ways[0], there, self.token_bytes)
                for rank, arrived in enumerate(sent):
                    share = sum(row[rank] for row in tokens) / (self.active * self.tokens)
                    threads.compute(rank, self.compute_ns * share, also=arrived)
                size = self.combine_bytes or self.token_bytes
                returned = self._send(threads, tokens, ways[1], back, size, is_back=True)
                for rank, arrived in enumerate(returned):
                    threads.meet(rank, arrived)
        return builder.build()

    def _chosen(self, shares: list[float], ranks: int, chance: Random) -> list[list[int]]:
        """How many of each rank's tokens go to each rank, its neighbours' experts side by side."""
        each = len(shares) // ranks
        if self.choices == "shares":
            bounds = range(0, len(shares), each)
            row = [round(self.tokens * summed(shares[at : at + each])) for at in bounds]
            return [row] * ranks
        chosen = [[0] * ranks for _ in range(ranks)]
        for row in chosen:
            for _ in range(self.tokens):
                # The largest keys are draws by weight, none twice (Efraimidis and Spirakis, 2006).
                keys = ((chance.random() ** (1 / share), at) for at, share in enumerate(shares))
                for _, expert in nlargest(self.active, keys):
                    row[expert // each] += 1
        return chosen

    def _send(
        self, threads: Threads, tokens: list[list[int]], activity: int, channel: int, size: int, *,
        is_back: bool = False,
    ) -> list[list[int]]:  # fmt: skip
        """Every rank's tokens on their way to the experts, or back: what arrives, by rank."""
        ranks = range(len(tokens))
        gates = [list(end) for end in threads.ends]
        arrived: list[list[int]] = [[] for _ in ranks]
        # Each begins with its neighbour, so that nobody is written to by all in the same order.
        for distance in ranks[1:]:
            for rank in ranks:
                peer = (rank + distance) % len(tokens)
                count = tokens[peer][rank] if is_back else tokens[rank][peer]
                if count and rank // self.node != peer // self.node:
                    arrived[peer].append(
                        threads.builder.transfer(
                            rank,
                            peer,
                            count * size,
                            activity=activity,
                            channel=channel,
                            after=gates[rank],
                        )
                    )
        return arrived


def wanted(experts: int, active: int, skew: float, chance: Random) -> list[float]:
    """By expert: of a token's choices, how many fall on it; 1 at most, ``active`` together."""
    weights = [1 / place**skew for place in range(1, experts + 1)]
    chance.shuffle(weights)
    shares = [0.0] * experts
    left, open_ones = float(active), set(range(experts))
    while open_ones:
        total = summed(weights[one] for one in open_ones)
        full = {one for one in open_ones if left * weights[one] >= total}
        if not full:
            for one in open_ones:
                shares[one] = left * weights[one] / total
            break
        for one in full:
            shares[one] = 1.0
        left -= len(full)
        open_ones -= full
    return shares
