"""TrueType fonts: how wide their letters are, and the part of one that a text needs.

A subset keeps every glyph's number, and drops the outlines of those that are not used: what a PDF
embeds. Glyphs that are made of others bring these along.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from lab.errors import LabError

_KEPT = ("cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "prep")
_PLACES = (
    "/usr/share/fonts/truetype/dejavu",
    "/usr/share/fonts/dejavu-sans-fonts",
    "/usr/share/fonts/dejavu",
    "/usr/share/fonts/TTF",
    "/usr/local/share/fonts",
    "/Library/Fonts",
)
_FILES = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}
_WORDS, _SCALE, _MORE, _TWO_SCALES, _MATRIX = 0x1, 0x8, 0x20, 0x40, 0x80  # of a component


class Font:
    """A font, read from its file's bytes."""

    def __init__(self, data: bytes) -> None:
        count = struct.unpack_from(">H", data, 4)[0]
        self._tables: dict[str, bytes] = {}
        for at in range(12, 12 + 16 * count, 16):
            tag, _, offset, length = struct.unpack_from(">4sLLL", data, at)
            self._tables[tag.decode("latin-1")] = data[offset : offset + length]
        head = self._tables["head"]
        self.units = struct.unpack_from(">H", head, 18)[0]
        self.box = struct.unpack_from(">4h", head, 36)
        self._is_long = struct.unpack_from(">h", head, 50)[0] == 1
        self.ascent, self.descent = struct.unpack_from(">2h", self._tables["hhea"], 4)
        self._metrics = struct.unpack_from(">H", self._tables["hhea"], 34)[0]
        self._glyphs = struct.unpack_from(">H", self._tables["maxp"], 4)[0]

    @classmethod
    def find(cls, *, is_bold: bool) -> Font:
        """DejaVu Sans of this machine."""
        for place in _PLACES:
            path = Path(place, _FILES[is_bold])
            if path.exists():
                return cls(path.read_bytes())
        raise LabError(
            f"a PDF embeds its letters, and {_FILES[is_bold]} is not on this machine",
            "Install it, on Debian and Ubuntu by: apt install fonts-dejavu-core; or write an .svg.",
        )

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """By character: its glyph's number."""
        cmap = self._tables["cmap"]
        for at in range(struct.unpack_from(">H", cmap, 2)[0]):
            platform, kind, offset = struct.unpack_from(">HHL", cmap, 4 + 8 * at)
            if (platform, kind) == (3, 1) and struct.unpack_from(">H", cmap, offset)[0] == 4:
                return _segments(cmap[offset:])
        raise LabError("a font has no table of its characters", "Install fonts-dejavu-core anew.")

    def glyph(self, letter: str) -> int:
        """A character's glyph; 0, an empty box, where it has none."""
        return self._numbers.get(ord(letter), 0)

    def advance(self, glyph: int) -> float:
        """How wide a glyph is, in thousandths of the letters' size."""
        at = 4 * min(glyph, self._metrics - 1)
        units: int = struct.unpack_from(">H", self._tables["hmtx"], at)[0]
        return units * 1000 / float(self.units)

    def width(self, text: str, size: float) -> float:
        """How wide a text is."""
        return sum(self.advance(self.glyph(letter)) for letter in text) * size / 1000

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """Where outlines begin."""
        loca = self._tables["loca"]
        if self._is_long:
            return struct.unpack_from(f">{self._glyphs + 1}L", loca)
        return tuple(2 * half for half in struct.unpack_from(f">{self._glyphs + 1}H", loca))

    def _outline(self, glyph: int) -> bytes:
        return self._tables["glyf"][self._places[glyph] : self._places[glyph + 1]]

    def _components(self, glyph: int) -> list[int]:
        """The glyphs that one is made of."""
        outline, found, at = self._outline(glyph), [], 10
        if not outline or struct.unpack_from(">h", outline)[0] >= 0:
            return []
        flags = _MORE
        while flags & _MORE:
            flags, part = struct.unpack_from(">HH", outline, at)
            found.append(part)
            at += 8 if flags & _WORDS else 6
            at += 2 if flags & _SCALE else 4 if flags & _TWO_SCALES else 8 if flags & _MATRIX else 0
        return found

    def subset(self, glyphs: Collection[int]) -> bytes:
        """The font with the outlines of these glyphs only."""
        wanted, left = {0}, list(glyphs)
        while left:
            glyph = left.pop()
            if glyph not in wanted:
                wanted.add(glyph)
                left += self._components(glyph)
        outlines, places = b"", [0]
        for glyph in range(self._glyphs):
            if glyph in wanted:
                outlines += self._outline(glyph)
                outlines += bytes(-len(outlines) % 4)
            places.append(len(outlines))
        tables = {tag: self._tables[tag] for tag in _KEPT if tag in self._tables}
        tables["glyf"] = outlines
        tables["loca"] = struct.pack(f">{len(places)}L", *places)
        head = bytearray(tables["head"])
        struct.pack_into(">L", head, 8, 0)  # the sum of all, below
        struct.pack_into(">h", head, 50, 1)  # places are long
        tables["head"] = bytes(head)
        return _file(tables)


def _segments(table: bytes) -> dict[int, int]:
    """The characters of a table of format 4."""
    count = struct.unpack_from(">H", table, 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", table, 14)
    starts = struct.unpack_from(f">{count}H", table, 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}h", table, 16 + 4 * count)
    offsets_at = 16 + 6 * count
    found = {}
    for at in range(count):
        offset = struct.unpack_from(">H", table, offsets_at + 2 * at)[0]
        for code in range(starts[at], ends[at] + 1):
            glyph = code
            if offset:
                place = offsets_at + 2 * at + offset + 2 * (code - starts[at])
                if place + 2 > len(table):
                    continue
                glyph = struct.unpack_from(">H", table, place)[0]
                if not glyph:
                    continue
            found[code] = (glyph + deltas[at]) & 0xFFFF
    return found


def _file(tables: dict[str, bytes]) -> bytes:
    """A font file of these tables, with its sums."""
    power = 2 ** (len(tables).bit_length() - 1)
    head = struct.pack(
        *(">LHHHH", 0x00010000, len(tables), 16 * power, power.bit_length() - 1),
        16 * (len(tables) - power),
    )
    entries, body, start = b"", b"", 12 + 16 * len(tables)
    for tag, content in sorted(tables.items()):
        entry = tag.encode(), _sum(content), start + len(body), len(content)
        entries += struct.pack(">4sLLL", *entry)
        body += content + bytes(-len(content) % 4)
    whole = bytearray(head + entries + body)
    place = whole.find(struct.pack(">4sL", b"head", _sum(tables["head"])))
    offset = struct.unpack_from(">L", whole, place + 8)[0]
    struct.pack_into(">L", whole, offset + 8, (0xB1B0AFBA - _sum(bytes(whole))) & 0xFFFFFFFF)
    return bytes(whole)


def _sum(content: bytes) -> int:
    padded = content + bytes(-len(content) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}L", padded)
    return sum(words) & 0xFFFFFFFF
