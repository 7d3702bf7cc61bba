"""Mirrors of C's structs: those in use are true, and whatever is changed in one is noticed."""

import ctypes as c
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.engines.sim import native as sim
from switch import dataplane, native, records
from switch.abi_check import AbiError, Layouts, compare
from switch.build import RUNTIME
from switch.ops import Verb

ALL = [(mirror, native.HEADERS) for mirror in native.SHARED_RECORDS] + [
    (mirror, sim.HEADERS) for mirror in sim.SHARED_RECORDS
]
KINDS = (c.c_uint16, c.c_uint32, c.c_uint64, c.c_int64)


def test_all_shared_records_are_compared() -> None:
    for module in (native, sim):
        found = {v for v in vars(module).values() if isinstance(v, type)}
        assert {v for v in found if issubclass(v, c.Structure)} == set(module.SHARED_RECORDS)


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
    with pytest.raises(AbiError, match=(mirror.__doc__ or "").rstrip(".")):
        compare([type("Changed", (c.Structure,), body)], headers)


def test_records_are_laid_out_as_their_header_says(tmp_path: Path) -> None:
    header = tmp_path / "some.h"
    header.write_text(
        "struct head { uint16_t kind, verb; /* uint32_t no; */ uint32_t length; };\n"
        "struct most { struct head head; int32_t a[2]; ns_t when; uint64_t values[]; };\n"
        "struct holed { uint32_t a; uint64_t b; };\n"
    )
    layouts = Layouts(header)
    assert layouts.of("most").format == "<HHIiiQ"
    with pytest.raises(AbiError, match="struct holed has holes"):
        layouts.of("holed")


@pytest.mark.parametrize(
    ("header", "prefix", "ours"),
    [
        ("ctl.h", "", vars(records)),
        ("ctl.h", "CTL_", Verb.__members__),
        ("ctl.h", "CTL_", {n: v for n, v in vars(records).items() if n.startswith("TO_")}),
        ("event.h", "", vars(dataplane)),
        ("sw.h", "SW_", dataplane.Role.__members__),
    ],
    ids=["kinds", "verbs", "targets", "events", "roles"],
)
def test_numbers_of_enumerations_are_the_headers(
    header: str, prefix: str, ours: Mapping[str, Any]
) -> None:
    text = re.sub(r"/\*.*?\*/", "", (RUNTIME / header).read_text(), flags=re.DOTALL)
    shared = 0
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, re.DOTALL):
        number = -1
        for each in filter(None, map(str.strip, body.split(","))):
            name, _, given = map(str.strip, each.partition("="))
            number = int(given or number + 1)
            for known in (name, name.removeprefix(prefix)):
                if known in ours:
                    value = ours[known]
                    assert getattr(value, "value", value) == number, known
                    shared += 1
    assert shared > 2


def test_a_struct_that_is_gone_is_noticed(tmp_path: Path) -> None:
    header = tmp_path / "empty.h"
    header.write_text("struct other { uint32_t x; };\n")
    with pytest.raises(AbiError, match="no header declares struct hosted_link"):
        compare([native.Link], [header])
