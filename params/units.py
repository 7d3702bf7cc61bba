"""Sizes and times as people write them: a number with its unit, which comes to a whole number."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator

_SIZES = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_TIMES = {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
MAX_MEMORY = 0xFFFFFFFF  # bytes: switches count in 32 bits
_MAX = 2**62  # bytes, nanoseconds or things: two of them fit into 64 bits
_HOST = re.compile(r"h([1-9]\d*)")
_QUANTITY = re.compile(r"\s*(\d{1,400}(?:\.\d{1,400})?(?:e\d{1,3})?)\s*([A-Za-z]*)\s*")
_FINE = 1000  # what is not whole is at most such a part of itself away from it


def _reader(units: dict[str, int], example: str, base: str) -> BeforeValidator:
    """Turn text with a unit into a whole number; leave anything else to the type check."""

    def read(value: object) -> object:
        number = _number(value)
        if isinstance(number, int) and abs(number) > _MAX:
            raise ValueError(f"'{value}' is too large")
        return number

    def _number(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        found = _QUANTITY.fullmatch(value)
        if found is None or found[2].lower() not in units:
            raise ValueError(f"'{value}' is not understood; write {example}")
        exact = Fraction(found[1]) * units[found[2].lower()]
        number = round(exact)
        if _FINE * abs(number - exact) > exact:
            raise ValueError(f"'{value}' is no whole number of {base}; write {example}")
        return number

    return BeforeValidator(read)


def _host_number(value: object) -> object:
    """``h3`` is the host with the number 2; leave anything else to the type check."""
    found = _HOST.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) - 1 if found else value


Host = Annotated[int, BeforeValidator(_host_number)]
Size = Annotated[int, _reader(_SIZES, "a number of bytes, 16KB, 4MB or 1MiB", "bytes")]
DurationNs = Annotated[int, _reader(_TIMES, "a number of nanoseconds, 50us or 3ms", "nanoseconds")]
Count = Annotated[int, _reader(_COUNTS, "a number, 70B or 1.5T", "things")]

_STEPS = {
    "B": ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")),
    "ns": ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")),
}


def written(value: int, unit: str) -> str:
    """A number of bytes (B), nanoseconds (ns) or things as it is read here: 4MB, 50us, none less or
    more."""
    for size, name in _STEPS.get(unit, ()) if value else ():
        if value % size == 0:
            return f"{value // size}{name}"
    return str(value)
