"""Groups of ranks that train one model together.

Ranks are numbered the way Megatron does: neighbours share a tensor group, then come data (within
which experts), and pipeline stages are farthest apart. So with 8 GPUs to a node and a tensor
degree of 8, tensor traffic stays in the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from params.data import Data
from traffic.collectives.errors import RankError

Group = tuple[int, ...]


class ParallelGroups(Data):
    """Who talks with whom, by the degrees of parallelism."""

    tensor: int
    data: int
    pipeline: int
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("tensor", "data", "pipeline", "expert"):
            if getattr(self, name) < 1:
                raise RankError(f"a {name} degree of {getattr(self, name)}", "give at least 1")
        if self.data % self.expert:
            raise RankError(
                f"{self.data} data-parallel ranks do not divide into expert groups of"
                f" {self.expert}",
                f"use an expert degree that divides {self.data}",
            )

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.tensor * self.data * self.pipeline

    def rank(self, stage: int, replica: int, shard: int) -> int:
        """The rank at these places of the pipeline, data and tensor dimensions."""
        return (stage * self.data + replica) * self.tensor + shard

    def tensor_groups(self, stage: int) -> list[Group]:
        """One for every replica."""
        return [
            tuple(self.rank(stage, replica, shard) for shard in range(self.tensor))
            for replica in range(self.data)
        ]

    def data_groups(self, stage: int) -> list[Group]:
        """One for every shard."""
        return [
            tuple(self.rank(stage, replica, shard) for replica in range(self.data))
            for shard in range(self.tensor)
        ]

    def expert_groups(self, stage: int) -> list[Group]:
        """Neighbouring replicas, which share the experts out among themselves."""
        return [
            group[first : first + self.expert]
            for group in self.data_groups(stage)
            for first in range(0, self.data, self.expert)
        ]

    def expert_data_groups(self, stage: int) -> list[Group]:
        """The replicas that have the same experts."""
        return [
            group[place :: self.expert]
            for group in self.data_groups(stage)
            for place in range(self.expert)
        ]


def check_partition(groups: Iterable[Sequence[int]], world: int) -> None:
    """Refuse groups that leave a rank out or name one twice."""
    seen: set[int] = set()
    for group in groups:
        for rank in group:
            if not 0 <= rank < world:
                raise RankError(f"there is no rank {rank}", f"ranks are 0 to {world - 1}")
            if rank in seen:
                raise RankError(f"rank {rank} is in two groups", "put every rank in one")
            seen.add(rank)
    if len(seen) != world:
        missing = next(rank for rank in range(world) if rank not in seen)
        raise RankError(f"rank {missing} is in no group", "put every rank in one")
