"""Values that clients know as strings: types translated to `sdn_string`.

P4Runtime leaves it to the server which number a string stands for. Here a string of decimal digits
is that number (so ports keep their names), the empty string is 0, and any other is given the
highest number that is free when it is first heard. A switch keeps what it gave out for as long as
it lives, so that entries mean the same after a pipeline has been reconciled.
"""

from __future__ import annotations

from switch.p4runtime.errors import exhausted, invalid, out_of_range

MAX_BYTES = 1_000


class Names:
    """The strings of one translated type."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name
        self._numbers: dict[bytes, int] = {}
        self._texts: dict[int, bytes] = {}

    def number(self, text: bytes, bits: int, what: str) -> int:
        """Return what a string stands for in a field of some width."""
        known = self._numbers.get(text)
        if known is None:
            known = self._give(text, bits, what)
        if known >> bits:
            raise out_of_range(
                f"{what}: {_shown(text)} stands for {known}, which is over {bits} bits"
            )
        return known

    def text(self, number: int) -> bytes:
        """Return the string a number goes by."""
        return self._texts.get(number) or (b"" if number in self._texts else b"%d" % number)

    def _give(self, text: bytes, bits: int, what: str) -> int:
        if len(text) > MAX_BYTES:
            raise invalid(f"{what}: a string of {len(text)} bytes; {MAX_BYTES} is the most")
        try:
            text.decode()
        except UnicodeDecodeError:
            raise invalid(f"{what}: 0x{text[:32].hex()} is not text in UTF-8") from None
        if not text or (text.isdigit() and (text == b"0" or text[:1] != b"0")):
            number = int(text or b"0")
            if number >> bits:
                raise out_of_range(f"{what}: {_shown(text)} does not fit in {bits} bits")
        else:
            number = (1 << bits) - 1
            while number in self._texts:
                number -= 1
            if number < 0:
                raise exhausted(
                    f"{what}: all {1 << bits} values of {self.type_name} have names already"
                )
        self._numbers[text] = number
        self._texts.setdefault(number, text)
        return number


def _shown(text: bytes) -> str:
    return repr(text[:40].decode(errors="replace"))
