"""Priority flow control: pauses, and the watchdog of what is paused; see p4src/pause.p4."""

from __future__ import annotations

from enum import Enum

from pydantic import Field, model_validator

from params.classes import LOSSLESS_PRIORITY, ClassSet
from params.section import Section
from params.units import MAX_MEMORY, DurationNs, Size


class Remedy(Enum):
    """What becomes of a stuck queue; see p4src/types.p4."""

    DROP = "drop"
    FORWARD = "forward"
    ALERT = "alert"


class Pfc(Section):
    """Priority flow control, for RoCEv2's priority or several."""

    enabled: bool = True
    """Whether switches pause whoever fills them, so that nothing is lost."""
    priorities: ClassSet = ClassSet((LOSSLESS_PRIORITY,))
    """The classes that must not lose anything, such as [3, 4]; each has headroom of its own."""
    headroom: Size | None = Field(default=None, ge=0, le=MAX_MEMORY)
    """Memory a port has for what arrives after a pause; without it what its link needs."""
    xon: Size | None = Field(default=None, ge=0, le=MAX_MEMORY)
    """The queue at which pauses end; with xon_gap too, the least that XON can be."""
    xon_gap: Size | None = Field(default=None, ge=0, le=MAX_MEMORY)
    """How far a queue must sink below XOFF to resume; without it, and without xon, two frames."""
    xon_follows: bool = False
    """Whether XON moves with the threshold while a pause lasts, or stays where it began."""
    response_ns: DurationNs = Field(default=4000, ge=0, le=10**9)
    """How long senders may take to obey; headroom allows for it."""
    asymmetric: bool = False
    """Whether hosts may pause every class, though only lossless ones are ever paused for them."""
    watchdog_ns: DurationNs = Field(default=200_000_000, ge=0, le=10**12)
    """A paused queue from which nothing leaves for so long is stuck (SONiC: 200 ms); 0: never."""
    watchdog_restore_ns: DurationNs | None = Field(default=None, ge=1, le=10**12)
    """It is stuck until no pause frame came for so long, and none is in force any more; without it
    as long as watchdog_ns."""
    watchdog_poll_ns: DurationNs | None = Field(default=None, ge=1, le=10**12)
    """How often paused queues are looked at; without it four times in the shorter of the two."""
    watchdog_action: Remedy = Remedy.DROP
    """What becomes of what is in a stuck queue: drop, forward (deaf to pauses), or alert only."""

    @property
    def restore_ns(self) -> int:
        """How long no pause frame must have come for a stuck queue to be none any more."""
        return self.watchdog_restore_ns or self.watchdog_ns

    @property
    def poll_ns(self) -> int:
        """How often paused queues are looked at."""
        return self.watchdog_poll_ns or max(1, min(self.watchdog_ns, self.restore_ns) // 4)

    @model_validator(mode="after")
    def _check(self) -> Pfc:
        shorter = min(self.watchdog_ns, self.restore_ns)
        if self.watchdog_ns and self.poll_ns > shorter:
            raise ValueError(
                f"a watchdog that looks every {self.poll_ns:,} ns does not see what lasts for "
                f"{shorter:,}: give watchdog_poll_ns no more than watchdog_ns and "
                "watchdog_restore_ns"
            )
        return self
