"""Keys of secure domains: who manages them (SDME), as UET's security sublayer calls it.

A domain's key follows from a root, its number (SDI) and the how manieth it is, by HKDF (RFC 5869,
SHA-256); what sources use follows from it at hosts (traffic/core/tss.c). Of two keys that a domain
has at a time one is in use: its turn's lowest bit tells which (AN). The root follows from a run's
seed, so that the same run says the same: nothing of this is secret, and what is does not belong
here.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from functools import cached_property

from params.data import Data

_SALT = b"closlab secure domains"


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


class SecureDomains(Data):
    """Domains by number, and whose they are: host numbers."""

    seed: int
    members: Mapping[int, Collection[int]]

    @cached_property
    def _root(self) -> bytes:
        return _hmac(_SALT, self.seed.to_bytes(8, "big", signed=True))

    def key(self, sdi: int, turn: int) -> bytes:
        """A domain's key of a turn, 32 bytes: the first is of turn 0."""
        return _hmac(self._root, sdi.to_bytes(4, "big") + turn.to_bytes(4, "big") + b"\1")

    def of(self, host: int) -> tuple[int, ...]:
        """The domains that a host is of."""
        return tuple(sdi for sdi, hosts in self.members.items() if host in hosts)


def association(turn: int) -> int:
    """Which of a domain's two keys that of a turn is (AN)."""
    return turn & 1
