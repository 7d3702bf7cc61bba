"""What a switch's buffer is: how much is shared, what is set aside, what a queue may hold."""

from __future__ import annotations

from controller.settings import SettingsError
from controller.tables import SwitchSite, headroom_of, pool_of, xon_of
from lab.errors import ScenarioError
from lab.scenario.model import Scenario
from lab.scenario.translate import controller_settings
from params.buffer import Buffer
from params.data import Data
from topologies import Fabric


class Memory(Data):
    """A switch's."""

    buffer: Buffer
    lossless: frozenset[int]
    pool: int  # bytes that all queues share
    headroom: int  # of all ports together
    xon: int  # a pause ends at this size of a queue,
    xon_below: int  # or so far below what it held when it began, whichever is more

    @classmethod
    def of(cls, scenario: Scenario, fabric: Fabric, switch: str) -> Memory:
        """Of a switch by its name."""
        settings = controller_settings(scenario, fabric)
        site = SwitchSite(fabric, fabric.node(switch), settings)
        try:
            pool = pool_of(site)
        except SettingsError as error:  # of a kept run that somebody changed
            raise ScenarioError(f"scenario '{scenario.name}': {error}") from None
        each = sum(headroom_of(site, port) for port in site.ports for _ in site.lossless)
        lossless = frozenset(site.lossless)
        headroom, xon = settings.buffer.headroom_pool or each, xon_of(site)
        return cls(
            *(settings.buffer, lossless, pool, headroom),
            *(xon["xon"], xon["xon_below_xoff"]),
        )

    def threshold(self, priority: int, held: float) -> float:
        """What a queue of a class may hold while so much of the pool is taken: p4src/buffer.p4."""
        share, free = self.buffer, max(0.0, self.pool - held)
        alpha, most, reserved = share.alpha, share.static, share.reserved
        if priority not in self.lossless:
            alpha = share.alpha if share.lossy_alpha is None else share.lossy_alpha
            most = share.static if share.lossy_static is None else share.lossy_static
            reserved = share.lossy_reserved
        return reserved + min(free, alpha * free if most is None else most)

    def resumes_at(self, held: float) -> float:
        """What a queue is down to when its pause ends that began when it held so much."""
        return max(self.xon, held - self.xon_below)
