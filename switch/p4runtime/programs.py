"""Programs on their way from JSON to a shared object, each built once.

The switches of a fabric are given the same program at the same moment. Whoever comes first has it
built; the others wait for that, and all share the result.
"""

from __future__ import annotations

import asyncio

from switch import dataplane as dp

KEPT = 16


class Programs:
    """The programs lately asked for by the switches of one process."""

    def __init__(self) -> None:
        self._builds: dict[tuple[bytes, bool], asyncio.Task[dp.Program]] = {}

    async def load(self, source: bytes, *, trace: bool) -> dp.Program:
        """Return the program of a BMv2 JSON, built in a thread if nobody asked for it before."""
        key = (source, trace)
        build = self._builds.get(key)
        if build is None or _failed(build):
            loading = asyncio.to_thread(dp.Program.load, source, trace=trace)
            build = asyncio.create_task(loading)
            self._builds.pop(key, None)
            self._builds[key] = build
            while len(self._builds) > KEPT:
                del self._builds[next(iter(self._builds))]
        # A client that gives up must not take the build from those who wait with it.
        return await asyncio.shield(build)


def _failed(build: asyncio.Task[dp.Program]) -> bool:
    return build.done() and (build.cancelled() or build.exception() is not None)
