"""Buffers as switches of some chips are shipped with, as far as public sources tell.

They are named `-like` because a chip does more than one pool and its thresholds: several memories,
pools for egress, multicast. What is taken over is the memory that lossless traffic shares, how much
of it one queue may take, what queues have to themselves, the headroom that ports share, when
pauses end, and the cells that memory comes in. Headroom itself is computed for each link, as ever.

Pools and thresholds: sonic-net/sonic-buildimage, commit 086b03bd70, device/common/profiles/...,
files buffers_defaults_t1.j2 (pool sizes, `xoff` the shared headroom) and pg_profile_lookup.ini
(`size` reserved, `xon`, `xon_offset`, and `threshold`, which is the logarithm of alpha).
Cells: facebook/fboss, getPacketBufferUnitSize() of TomahawkAsic.h (208) and Tomahawk4Asic.h (254).
"""

from __future__ import annotations

from params.data import Data


class Asic(Data):
    """A chip's buffer; sizes in bytes."""

    source: str
    pool: int
    headroom_pool: int
    reserved: int  # of a lossless priority at a port
    alpha: float
    lossy_alpha: float
    xon: int
    xon_offset: int
    cell: int


ASICS = {
    "tomahawk-like": Asic(
        source="sonic-buildimage device/common/profiles/th/gen/BALANCED",
        pool=10_875_072,
        headroom_pool=4_194_112,
        reserved=1248,
        alpha=1,
        lossy_alpha=8,
        xon=2288,
        xon_offset=2288,
        cell=208,
    ),
    "tomahawk4-like": Asic(
        source="sonic-buildimage device/common/profiles/th4/gen/BALANCED",
        pool=37_333_333,
        headroom_pool=24_000_000,
        reserved=1248,
        alpha=1,
        lossy_alpha=8,
        xon=2288,
        xon_offset=2288,
        cell=254,
    ),
}
