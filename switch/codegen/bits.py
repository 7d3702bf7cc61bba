"""Fields to and from wire bits, as straight-line C.

A run of fields is stored with as few machine stores as byte boundaries allow: fields are gathered
until they end on a byte, then joined with shifts and stored big-endian at once. Where that would
take more than 64 bits (a wide field off a byte boundary) single bits are put instead.
"""

from __future__ import annotations

from params.data import Data


class Piece(Data):
    """Bits to store: C text of an unsigned value with no more than `width` bits."""

    text: str
    width: int  # at most 64


def mask_text(width: int) -> str:
    """A mask of low ones."""
    return f"{(1 << width) - 1:#x}u"


def pieces(text: str, width: int, is_signed: bool = False) -> list[Piece]:
    """A stored field, cut into words, high bits first."""
    if width <= 64:
        if is_signed and width not in (8, 16, 32, 64):
            return [Piece(f"((uint64_t){text} & {mask_text(width)})", width)]
        if is_signed:
            return [Piece(f"(uint{width}_t){text}", width)]
        return [Piece(text, width)]
    if width <= 128:
        high = f"(uint64_t)((u128){text} >> 64)"
        if is_signed and width < 128:
            high = f"({high} & {mask_text(width - 64)})"
        return [Piece(high, width - 64), Piece(f"(uint64_t){text}", 64)]
    top = width % 64 or 64
    words = -(-width // 64)
    found = [Piece(f"{text}.word[{i}]", 64) for i in range(words - 2, -1, -1)]
    high = f"{text}.word[{words - 1}]"
    if is_signed and top < 64:
        high = f"({high} & {mask_text(top)})"
    return [Piece(high, top), *found]


def store(run: list[Piece], at: int, base: str = "p") -> list[str]:
    """Statements that store pieces at `base`, from bit `at` on."""
    lines: list[str] = []
    group: list[Piece] = []
    start = at
    for piece in run:
        group.append(piece)
        at += piece.width
        if at % 8 == 0:
            lines += store_group(group, start, base)
            group, start = [], at
    if group:
        lines += [put(p, a, base) for p, a in placed(group, start)]
    return lines


def placed(group: list[Piece], start: int) -> list[tuple[Piece, int]]:
    """Pieces with the bit each starts at."""
    result = []
    for piece in group:
        result.append((piece, start))
        start += piece.width
    return result


def put(piece: Piece, at: int, base: str) -> str:
    """One piece by single bits."""
    return f"sw_put_bits({base}, {at}, {piece.width}, {piece.text});"


def store_group(group: list[Piece], start: int, base: str) -> list[str]:
    """Pieces that end on a byte boundary."""
    width = sum(p.width for p in group)
    if start % 8 or width > 64:
        return [put(p, a, base) for p, a in placed(group, start)]
    target = f"{base} + {start // 8}" if start else base
    if len(group) == 1:
        if width == 8:
            return [f"{base}[{start // 8}] = (uint8_t){group[0].text};"]
        return [f"be_store({target}, {width // 8}, {group[0].text});"]
    terms = []
    left = width
    for piece in group:
        left -= piece.width
        text = f"(uint64_t){piece.text}"
        terms.append(f"{text} << {left}" if left else text)
    if width == 8:
        return [f"{base}[{start // 8}] = (uint8_t)({' | '.join(terms)});"]
    return [f"be_store({target}, {width // 8}, {' | '.join(terms)});"]


def load(at: int, width: int, base: str = "p") -> str:
    """An unsigned value of up to 128 bits, from bit `at` of `base`."""
    if width > 64:
        if at % 8 == 0 and width % 8 == 0:
            high = load(at, width - 64, base)
            return f"((u128){high} << 64 | {load(at + width - 64, 64, base)})"
        high = f"sw_get_bits({base}, {at}, {width - 64})"
        return f"((u128){high} << 64 | sw_get_bits({base}, {at + width - 64}, 64))"
    first, last = at // 8, (at + width - 1) // 8
    count = last - first + 1
    if count > 8:
        return f"sw_get_bits({base}, {at}, {width})"
    shift = (last + 1) * 8 - (at + width)
    text = f"{base}[{first}]" if count == 1 else f"be_load({base} + {first}, {count})"
    if first == 0 and count > 1:
        text = f"be_load({base}, {count})"
    if shift:
        text = f"{text} >> {shift}"
    if at % 8:
        text = f"({text}) & {mask_text(width)}" if shift else f"{text} & {mask_text(width)}"
    return (
        f"({text})" if (" " in text and not text.startswith("be_load")) or shift or at % 8 else text
    )
