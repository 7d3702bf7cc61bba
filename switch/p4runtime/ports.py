"""How clients name ports where no field's type says it: what is watched, what is copied to."""

from __future__ import annotations

from switch.p4runtime import values as wire
from switch.p4runtime.errors import invalid
from switch.p4runtime.names import Names


class Ports:
    """As strings, where the program's own type of ports is translated to such; else as numbers."""

    def __init__(self, names: Names | None, bits: int) -> None:
        self._names, self._bits = names, bits

    def number(self, text: bytes, what: str) -> int:
        """Return the port that a client means."""
        if self._names is None:
            return wire.decode(text, self._bits, what)
        if not text.decode(errors="replace").isprintable():
            raise invalid(f"{what}: 0x{text[:32].hex()} is no name; ports are strings here, as '2'")
        return self._names.number(text, self._bits, what)

    def text(self, port: int) -> bytes:
        """Return a port as clients name it."""
        return wire.encode(port) if self._names is None else self._names.text(port)
