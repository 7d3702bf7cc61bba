"""UET's security sublayer: what a scenario may say of it, and which domain a message is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import Field, model_validator

from controller.secure_domains import SecureDomains, association
from params.section import Section
from params.units import DurationNs
from traffic.collectives import Activity
from traffic.endpoint import SecureKey

HEADER_BYTES, SSI_BYTES, ICV_BYTES, CRC_BYTES = 12, 4, 16, 4
CUT_BYTES = 16  # of packet delivery's headers, that what was cut has to have left


class SecuritySettings(Section):
    """UET's security sublayer (TSS): what packets say is encrypted and authenticated (AES-GCM)."""

    enabled: bool = False
    """Whether it is: each job, and each tenant's, by keys of its own, which the controller gives to
    its hosts. A packet has 24 bytes more than without: 12 in front, and 16 behind in place of a CRC
    of 4; with several ports 4 more."""
    rekey_at_ns: list[DurationNs] = []
    """When the controller gives every domain its next key."""
    rekey_after_ns: DurationNs = Field(default=20_000, ge=1)
    """How much later it tells all to send by it: as long what the key before it encrypted has to
    arrive at least until the next but one is given."""

    @model_validator(mode="after")
    def _check(self) -> SecuritySettings:
        times = self.rekey_at_ns
        for one, other in pairwise(times):
            if other < one + 2 * self.rekey_after_ns:
                raise ValueError(
                    f"rekey_at_ns: {other:,} ns is less than twice rekey_after_ns, "
                    f"{2 * self.rekey_after_ns:,} ns, after {one:,} ns: what is under way would "
                    "lose its key; let keys live longer"
                )
        return self

    def header_bytes(self, ports: int) -> int:
        """What stands before packet delivery's: hosts with several ports say who they are."""
        return HEADER_BYTES + (SSI_BYTES if ports > 1 else 0)

    def more_bytes(self, ports: int) -> int:
        """What a frame has more than without."""
        return self.header_bytes(ports) + ICV_BYTES - CRC_BYTES if self.enabled else 0


class Word(NamedTuple):
    """What the controller has to say of each domain's key of a turn: to have it, or to use it."""

    at_ns: int
    turn: int
    is_used: bool


def words_of(settings: SecuritySettings) -> Iterator[Word]:
    """All of them, in order; the first keys are there before anything happens."""
    for turn, at_ns in enumerate(settings.rekey_at_ns if settings.enabled else (), 1):
        yield Word(at_ns, turn, is_used=False)
        yield Word(at_ns + settings.rekey_after_ns, turn, is_used=True)


def domain_of(activity: Activity, host: str, tenants: Mapping[str, Sequence[str]]) -> str:
    """What makes a domain: a job, of a tenant if there are any."""
    whose = (name for name, hosts in tenants.items() if host in hosts)
    return f"{activity.job} {next(whose, '')}"


class Keys:
    """Domains by what makes them, and what their hosts are told."""

    def __init__(self, seed: int, hosts: Mapping[str, set[int]]) -> None:
        self.sdi = {name: number for number, name in enumerate(hosts, 1)}
        members = {self.sdi[name]: frozenset(ranks) for name, ranks in hosts.items()}
        self.domains = SecureDomains(seed, members)

    def _key(self, sdi: int, turn: int) -> SecureKey:
        return SecureKey(sdi, association(turn), self.domains.key(sdi, turn))

    def first_lines(self, rank: int) -> Iterator[str]:
        """With what a host begins."""
        for sdi in self.domains.of(rank):
            key = self._key(sdi, 0)
            yield from (key.line(), key.use_line())

    def lines(self, word: Word) -> Iterator[tuple[int, str]]:
        """What the hosts are told, by rank."""
        for sdi, ranks in self.domains.members.items():
            key = self._key(sdi, word.turn)
            line = key.use_line() if word.is_used else key.line()
            yield from ((rank, line) for rank in sorted(ranks))
