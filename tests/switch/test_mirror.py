"""Mirrors of C's structs: those in use are true, and whatever is changed in one is noticed."""

import ctypes as c
import random
from pathlib import Path

import pytest

from lab.engines.sim import native as sim
from switch import native
from switch.mirror import MirrorError, compare

ALL = [(mirror, native.HEADERS) for mirror in native.MIRRORS] + [
    (mirror, sim.HEADERS) for mirror in sim.MIRRORS
]
KINDS = (c.c_uint16, c.c_uint32, c.c_uint64, c.c_int64)


def test_all_mirrors_are_compared() -> None:
    for module in (native, sim):
        found = {v for v in vars(module).values() if isinstance(v, type)}
        assert {v for v in found if issubclass(v, c.Structure)} == set(module.MIRRORS)


@pytest.mark.parametrize("seed", range(40))
def test_a_field_that_differs_is_noticed(seed: int) -> None:
    draw = random.Random(seed)
    mirror, headers = draw.choice(ALL)
    compare([mirror], headers)
    fields = list(mirror._fields_)
    at = draw.randrange(len(fields))
    name, kind = fields[at][:2]
    match draw.randrange(4):
        case 0:
            del fields[at]
        case 1:
            fields.insert(at, ("new", draw.choice(KINDS)))
        case 2:
            fields[at] = (name, draw.choice([k for k in KINDS if k is not kind]))
        case 3:
            fields[at] = (f"{name}_", kind)
    body = {"__doc__": mirror.__doc__, "_fields_": fields}
    with pytest.raises(MirrorError, match=(mirror.__doc__ or "").rstrip(".")):
        compare([type("Changed", (c.Structure,), body)], headers)


def test_a_struct_that_is_gone_is_noticed(tmp_path: Path) -> None:
    header = tmp_path / "empty.h"
    header.write_text("struct other { uint32_t x; };\n")
    with pytest.raises(MirrorError, match="no header declares struct hosted_link"):
        compare([native.Link], [header])
