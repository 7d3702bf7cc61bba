"""What the text of a literal means."""

from __future__ import annotations


def base_of(text: str) -> int:
    """The base a number is written in."""
    return {"x": 16, "b": 2, "o": 8, "d": 10}.get(text[1:2].lower(), 10)


def integer(text: str) -> int | None:
    """A number without its width; None if it is none."""
    digits = text.replace("_", "")
    base = base_of(digits)
    body = digits[2:] if base != 10 or digits[1:2].lower() == "d" else digits
    if not body or len(body) > 4000:
        return None
    try:
        return int(body, base)
    except ValueError:
        return None


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def unescape(text: str) -> str:
    """The characters of a string, without its quotes."""
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            out.append(_ESCAPES.get(following, following))
        else:
            out.append(character)
    return "".join(out)
