"""A drawing as a PDF of its own size: the same shapes, in vectors, with its letters embedded.

The file has a page as large as the drawing, a font for ordinary letters and one for bold ones, of
each the glyphs that are used, and what the picture shows as its title. There is no date in it: the
same drawing makes the same bytes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping

from views.report.palette import DAY, INK, PAPER
from views.report.svg import MARGIN, Drawing, Shape
from views.report.truetype import Font

_WORD = re.compile(r"[MLhvz]|-?\d+(?:\.\d+)?")
_ARC = 0.5523  # of a quarter of a circle: how far the handles of its curve reach
_HALO = 3


def to_pdf(drawing: Drawing, colours: Mapping[str, str] = DAY) -> bytes:
    """The file."""
    fonts = {"F0": _Embedded("F0", is_bold=False), "F1": _Embedded("F1", is_bold=True)}
    opacities: dict[str, str] = {}
    page = " ".join(
        ["1 0 0 -1 0", _n(drawing.height), "cm 1 j"]
        + [word for shape in drawing.shapes for word in _words(shape, colours, fonts, opacities)]
    )
    used = [font for font in fonts.values() if font.letters]
    first = 6  # catalog, pages, page, its content, information
    names = " ".join(f"/{font.name} {first + 5 * at} 0 R" for at, font in enumerate(used))
    states = " ".join(f"/{name} << /ca {value} >>" for value, name in opacities.items())
    edges = -MARGIN, -MARGIN, drawing.width + MARGIN, drawing.height + MARGIN
    size = f"[{' '.join(map(_n, edges))}]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) "
        b"/ViewerPreferences << /DisplayDocTitle true >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox {size} /Contents 4 0 R /Resources << "
        f"/Font << {names} >> /ExtGState << {states} >> >> >>".encode(),
        _stream(page.encode()),
        b"<< /Title " + _text(drawing.title) + b" /Producer (closlab) >>",
    ]
    for at, font in enumerate(used):
        objects += font.objects(first + 5 * at)
    return _file(objects)


class _Embedded:
    """A font of a file, and the letters of it that are used."""

    def __init__(self, name: str, *, is_bold: bool) -> None:
        self.name = name
        self.letters: dict[str, int] = {}
        self.font = Font.find(is_bold=is_bold)
        self._base = f"CLOSLA+DejaVuSans{'-Bold' if is_bold else ''}"

    def codes(self, text: str) -> str:
        """A text as the file has it."""
        for letter in text:
            self.letters.setdefault(letter, self.font.glyph(letter))
        return "<" + "".join(f"{self.letters[letter]:04x}" for letter in text) + ">"

    def objects(self, first: int) -> list[bytes]:
        """The five that make it: itself, its descendant, what it is like, its file, its meaning."""
        font, unit = self.font, 1000 / self.font.units
        widths = " ".join(
            f"{glyph} [{_n(font.advance(glyph))}]" for glyph in sorted(set(self.letters.values()))
        )
        box = " ".join(_n(edge * unit) for edge in font.box)
        meant = {glyph: letter for letter, glyph in self.letters.items()}
        lines = "\n".join(f"<{glyph:04x}> <{ord(meant[glyph]):04x}>" for glyph in sorted(meant))
        meaning = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
            "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n"
            "/CMapName /Letters def /CMapType 2 def\n"
            "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
            f"{len(meant)} beginbfchar\n{lines}\nendbfchar\n"
            "endcmap CMapName currentdict /CMap defineresource pop end end"
        )
        system = "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
        return [
            f"<< /Type /Font /Subtype /Type0 /BaseFont /{self._base} /Encoding /Identity-H "
            f"/DescendantFonts [{first + 1} 0 R] /ToUnicode {first + 4} 0 R >>".encode(),
            f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{self._base} {system} "
            f"/FontDescriptor {first + 2} 0 R /CIDToGIDMap /Identity /W [{widths}] >>".encode(),
            f"<< /Type /FontDescriptor /FontName /{self._base} /Flags 32 /FontBBox [{box}] "
            f"/ItalicAngle 0 /Ascent {_n(font.ascent * unit)} /Descent {_n(font.descent * unit)} "
            f"/CapHeight 729 /StemV 80 /FontFile2 {first + 3} 0 R >>".encode(),
            _stream(font.subset(set(self.letters.values()))),
            _stream(meaning.encode()),
        ]


def _words(
    shape: Shape,
    colours: Mapping[str, str],
    fonts: Mapping[str, _Embedded],
    opacities: dict[str, str],
) -> Iterator[str]:
    """What draws a shape."""
    if shape.name == "text":
        yield from _letters(shape, colours, fonts)
        return
    style = shape.style
    fill = colours.get(str(style.get("fill", INK)), str(style.get("fill", "")))
    stroke = colours.get(str(style.get("stroke", "none")), str(style.get("stroke", "none")))
    is_filled = fill.startswith("#") and shape.name != "line"
    is_stroked = stroke.startswith("#")
    path = " ".join(_path(shape))
    if not path or not (is_filled or is_stroked):
        return
    yield "q"
    opacity = str(style.get("fill_opacity", ""))
    if opacity:
        yield f"/{opacities.setdefault(opacity, f'G{len(opacities)}')} gs"
    if is_filled:
        yield _colour(fill, "rg")
    if is_stroked:
        yield f"{_colour(stroke, 'RG')} {_n(shape.number('stroke_width', 1))} w"
        yield f"[{style.get('stroke_dasharray', '')}] 0 d"
    yield f"{path} {'B' if is_filled and is_stroked else 'f' if is_filled else 'S'} Q"


def _letters(
    shape: Shape, colours: Mapping[str, str], fonts: Mapping[str, _Embedded]
) -> Iterator[str]:
    if not shape.text:
        return
    font = fonts["F1" if shape.has("strong") else "F0"]
    wide = font.font.width(shape.text, shape.size)
    anchor = str(shape.style.get("text_anchor", "start"))
    x = shape.number("x") - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
    ink = colours[str(shape.style.get("fill", INK))]
    place = f"/{font.name} {_n(shape.size)} Tf 1 0 0 -1 {_n(x)} {_n(shape.number('y'))} Tm"
    codes = font.codes(shape.text)
    yield "q BT"
    if shape.has("halo"):
        yield f"{_colour(colours[PAPER], 'RG')} {_HALO} w 1 Tr {place} {codes} Tj 0 Tr"
    yield f"{_colour(ink, 'rg')} {place} {codes} Tj ET Q"


def _path(shape: Shape) -> Iterator[str]:
    """A shape's outline, in a PDF's words."""
    number = shape.number
    match shape.name:
        case "line":
            yield f"{_n(number('x1'))} {_n(number('y1'))} m {_n(number('x2'))} {_n(number('y2'))} l"
        case "rect" if number("width") and number("height"):
            x, y, wide, high = (number(key) for key in ("x", "y", "width", "height"))
            yield from _rounded(x, y, wide, high, min(number("rx"), wide / 2, high / 2))
        case "circle" if number("r"):
            r = number("r")
            yield from _rounded(number("cx") - r, number("cy") - r, 2 * r, 2 * r, r)
        case "path":
            yield from _drawn(str(shape.style["d"]))


def _rounded(x: float, y: float, wide: float, high: float, r: float) -> Iterator[str]:
    if not r:
        yield f"{_n(x)} {_n(y)} {_n(wide)} {_n(high)} re"
        return
    far = r * (1 - _ARC)
    right, low = x + wide, y + high

    def curve(*places: float) -> str:
        return " ".join(map(_n, places)) + " c"

    yield f"{_n(x + r)} {_n(y)} m {_n(right - r)} {_n(y)} l"
    yield curve(right - far, y, right, y + far, right, y + r)
    yield f"{_n(right)} {_n(low - r)} l"
    yield curve(right, low - far, right - far, low, right - r, low)
    yield f"{_n(x + r)} {_n(low)} l"
    yield curve(x + far, low, x, low - far, x, low - r)
    yield f"{_n(x)} {_n(y + r)} l"
    yield curve(x, y + far, x + far, y, x + r, y)
    yield "h"


def _drawn(d: str) -> Iterator[str]:
    """SVG's path, of the commands that drawings use."""
    words = iter(_WORD.findall(d))
    x = y = 0.0
    for command in words:
        match command:
            case "M" | "L":
                x, y = float(next(words)), float(next(words))
                yield f"{_n(x)} {_n(y)} {'m' if command == 'M' else 'l'}"
            case "h" | "v":
                step = float(next(words))
                x, y = (x + step, y) if command == "h" else (x, y + step)
                yield f"{_n(x)} {_n(y)} l"
            case "z":
                yield "h"


def _colour(code: str, operator: str) -> str:
    return " ".join(f"{int(code[at : at + 2], 16) / 255:.3g}" for at in (1, 3, 5)) + f" {operator}"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> bytes:
    return b"<feff" + text.encode("utf-16-be").hex().encode() + b">"


def _stream(content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    head = f"<< /Length {len(packed)} /Length1 {len(content)} /Filter /FlateDecode >>\nstream\n"
    return head.encode() + packed + b"\nendstream"


def _file(objects: list[bytes]) -> bytes:
    """Objects, and where each of them is."""
    body, places = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        body
        + (
            f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
            f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R >>\n"
            f"startxref\n{len(body)}\n%%EOF\n"
        ).encode()
    )
