"""Entries no packet has hit for their idle time."""

from __future__ import annotations

import time
from collections.abc import Iterable

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.tables import Tables


def notification(
    events: Iterable[dp.IdleTimeout], tables: Tables
) -> p4r.StreamMessageResponse | None:
    """Return one message for all entries that went idle, None if they are all gone by now."""
    entries = [entry for event in events if (entry := tables.find(event.entry)) is not None]
    if not entries:
        return None
    return p4r.StreamMessageResponse(
        idle_timeout_notification=p4r.IdleTimeoutNotification(
            table_entry=entries, timestamp=time.time_ns()
        )
    )
