"""Connections to the page: no more than there is room for, and none that keeps others out.

All of them come from this machine, so none can be told from another by its address. What is
limited is what one of them may cost: a request has to be whole after a while, an answer has to be
taken, and where all places are taken a newcomer gets that of whoever has been there longest without
asking anything whole; if all have asked, that of the oldest. Of many that come at once each has a
moment to say what it wants before that is looked at. A page whose stream is cut asks for it again.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX = 64
REQUEST_S = 10.0
"""How long a request may take to come, its body included."""
TAKEN_S = 30.0
"""How long an answer may wait for its reader."""
_MOMENT_S = 0.1
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Guest(H11Protocol):
    """One of them."""

    _due: asyncio.TimerHandle | None = None  # by when its request is whole
    _unread: asyncio.TimerHandle | None = None  # by when it has taken what it was sent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in, in the place of another if need be."""
        known: dict[Guest, None] = self.app_state.setdefault("guests", {})  # in order of arrival
        super().connection_made(transport)
        known[self] = None
        self._wait()
        if len(known) > 2 * MAX:
            self._make_room()
        elif len(known) > MAX:
            self.loop.call_later(_MOMENT_S, self._make_room)

    def _make_room(self) -> None:
        """Send one away who was here before, if there are still too many."""
        known: dict[Guest, None] = self.app_state["guests"]
        others = [guest for guest in known if guest is not self]
        if len(known) > MAX:
            next((guest for guest in others if guest._is_awaited), others[0]).leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.app_state["guests"].pop(self, None)
        self._wait(is_over=True)
        self.resume_writing()
        super().connection_lost(exc)

    def leave(self) -> None:
        """End it, whatever it is at."""
        self.app_state["guests"].pop(self, None)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        try:
            super().data_received(data)
        except (h11.ProtocolError, ValueError):  # nonsense after what was answered already
            self.leave()
        self._wait(is_over=not self._is_awaited)

    def pause_writing(self) -> None:
        """Its reader does not keep up."""
        self.flow.pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(TAKEN_S, self.leave)

    def resume_writing(self) -> None:
        """It does again."""
        self.flow.resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    @property
    def _is_awaited(self) -> bool:
        """Whether the rest of a request is still to come."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _wait(self, *, is_over: bool = False) -> None:
        if is_over and self._due is not None:
            self._due.cancel()
            self._due = None
        elif not is_over and self._due is None:
            self._due = self.loop.call_later(REQUEST_S, self._too_slow)

    def _too_slow(self) -> None:
        if self.conn.our_state is h11.IDLE:
            self.transport.write(_TOO_SLOW)
            self.transport.close()
        else:
            self.leave()
