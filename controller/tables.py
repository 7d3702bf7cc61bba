"""The fabric program's tables as P4Runtime entities: the one place that knows their names."""

from __future__ import annotations

from collections.abc import Iterator

import finsy as fy

from controller.routes import NextHop, Route

ROUTES = "ipv4_routes"
NEXT_HOPS = "next_hops"
RECEIVED = "received"
SENT = "sent"
DROPPED = "dropped"

# In the order of drop_reason_t in p4src/types.p4.
DROP_REASONS = (
    "none",
    "malformed",
    "not_ipv4",
    "bad_checksum",
    "ttl_expired",
    "no_route",
    "no_next_hop",
)


def entities(routes: tuple[Route, ...]) -> Iterator[fy.P4TableEntry]:
    """Table entries of a switch's routes; equal sets of next hops share a group."""
    groups: dict[tuple[NextHop, ...], int] = {}
    for route in routes:
        if len(route.next_hops) > 1 and route.next_hops not in groups:
            groups[route.next_hops] = len(groups) + 1
    for next_hops, group in groups.items():
        for member, hop in enumerate(next_hops):
            yield fy.P4TableEntry(
                NEXT_HOPS,
                match=fy.Match(**{"meta.group": group, "meta.member": member}),
                action=fy.Action("next_hop", port=hop.port, next_mac=hop.mac),
            )
    for route in routes:
        yield fy.P4TableEntry(
            ROUTES,
            match=fy.Match(**{"hdr.ipv4.dst_addr": str(route.prefix)}),
            action=_towards(route, groups),
        )


def _towards(route: Route, groups: dict[tuple[NextHop, ...], int]) -> fy.Action:
    if len(route.next_hops) == 1:
        (hop,) = route.next_hops
        return fy.Action("to_port", port=hop.port, next_mac=hop.mac)
    return fy.Action("to_group", group=groups[route.next_hops], size=len(route.next_hops))
