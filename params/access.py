"""The access list: which packets may pass; see p4src/permit.p4."""

from __future__ import annotations

from ipaddress import ip_network

from pydantic import Field, field_validator

from params.section import Section


class Rule(Section):
    """A rule of the access list; what it leaves out matches anything."""

    allow: bool
    """Whether packets it matches may pass; those that may not are dropped."""
    src: str | None = None
    """From whom: a host, such as h1, or a prefix, such as 10.0.1.0/24 or fd00:0:0:1::/64."""
    dst: str | None = None
    """To whom, likewise."""
    protocol: int | None = Field(default=None, ge=0, le=255)
    """What IPv4 calls the protocol and IPv6 the next header: 17 is UDP, and so RoCEv2."""
    src_port: int | None = Field(default=None, ge=0, lt=1 << 16)
    """The UDP or TCP port it comes from."""
    dst_port: int | None = Field(default=None, ge=0, lt=1 << 16)
    """The port it goes to; 4791 is RoCEv2's."""

    @field_validator("src", "dst")
    @classmethod
    def _is_host_or_prefix(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("h"):
            try:
                ip_network(value)
            except ValueError as error:
                raise ValueError(f"{error}; write a host, h1, or a prefix, 10.0.1.0/24") from None
        return value

    @property
    def hosts(self) -> list[str]:
        """The hosts it names."""
        return [end for end in (self.src, self.dst) if end is not None and end[0] == "h"]
