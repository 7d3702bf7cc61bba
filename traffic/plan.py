"""What a host is told to send and to expect, and what it reports afterwards.

Plans and reports travel as JSON between the lab and the hosts' processes.
"""

from __future__ import annotations

import hashlib
from typing import Self

from pydantic import BaseModel, ConfigDict


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Record):
    """One RDMA WRITE message from a host to another."""

    src: str
    dst: str
    size: int
    queue_pair: int
    src_port: int

    def data(self) -> bytes:
        """The message's bytes: both ends compute them, so the receiver can check every one."""
        return hashlib.shake_128(f"{self.src}>{self.dst}:{self.queue_pair}".encode()).digest(
            self.size
        )


class HostPlan(_Record):
    """Everything a host's process needs to know."""

    name: str
    interface: str
    mac: str
    gateway_mac: str
    path_mtu: int
    sends: tuple[Message, ...]
    expects: tuple[Message, ...]


class MessageReport(_Record):
    """What became of a message, told by its receiver."""

    message: Message
    complete: bool
    packets: int
    out_of_order: int
    ttl: int | None
    end_ns: int | None


class HostReport(_Record):
    """What a host sent and received. Times are of the machine's monotonic clock."""

    name: str
    sent_packets: int
    sent_bytes: int
    start_ns: dict[int, int]  # by queue pair
    received: tuple[MessageReport, ...]
    damaged: tuple[str, ...]
    stray_packets: int

    @classmethod
    def silent(cls, name: str) -> Self:
        """What is known of a host that told nothing."""
        return cls(
            name=name,
            sent_packets=0,
            sent_bytes=0,
            start_ns={},
            received=(),
            damaged=(),
            stray_packets=0,
        )
