"""Every key, at and beyond its bounds, through all three doors: honoured, or refused by name.

No key is listed here: they are found by walking the models that check a scenario, and what to try
follows from each one's type. What a scenario then says is held against what was written, read once
more by other means.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, get_args, get_origin

import annotated_types
import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import closlab
from lab.errors import LabError
from lab.runs.lots import drawn
from lab.scenario import catalogue
from lab.scenario.controls import values_of
from lab.scenario.model import SECTION_KINDS, Scenario, all_keys
from lab.scenario.translate import controller_settings
from params.marking import gradient
from params.shares import chance_code
from traffic.congestion import CONTROLS, Kind
from traffic.reading import YamlError, parse_yaml

WITH_A_ROUTER = {
    "control": {"kind": "bgp"},
    "topology": {"outside": [{"host": "h1", "prefixes": ["198.51.100.0/24"]}]},
}
BASES = 250  # drawn scenarios among which each key is looked for
PLAIN = {"name": "x", "traffic": {"kind": "incast", "senders": 2, "bytes": "1KB"}}
ODD = (
    *("0", "1", "-1", "0.4", "1.5", "1e-10", "-1e-10", "1.0e-10", ".nan", ".inf", "-.inf", "1e30"),
    *("4294967296", "18446744073709551616", "1" * 40, "null", "true", "no", "x", '""', '"3"', "[]"),
    *("[3, 3]", "[4, 3]", "[3, 4, 7]", "[-1]", "[true]", "[3.5]", '["3", 3]', "[1e30]", "{}"),
    *('{3: 1, "3": 2}', "{3: 1, 0x3: 2}", "{3: 1, '03': 2}", "{3: -1}", "{7: 1}", "{3: 1e-10}"),
    *("{h1: 1e-10}", "{h1: 0}", "{h1: .nan}", "{a: [h1, h1]}", "{3: true}", "h1", "h0", "[h1, h1]"),
    *("0.4ns", "0.4B", "1.5B", "0.1GiB", "1.0005us", "9007199254740993B", "16KB", "3 ms", "-1ns"),
    *("1e400s", "99999999999999GB", "1_000", "5k", "0x10"),
)
FILES = "file", "files", "groups", "path"  # which are looked for beside who names them
FOLDER = TemporaryDirectory()  # files that drawn scenarios name
UNITS = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10,
    "mib": 2**20, "gib": 2**30, "tib": 2**40, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip
COUNTS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
# Keys that a message may name instead: with which the one that was given does not go together.
OTHERS = (
    "is there twice, in line",
    *(key.name for key in all_keys() if "." in key.name),
    "faults:",
)
MBPS, GBPS = 10**6, 10**9
# What is written another way than it is said.
SAYS = {
    ("llr", True): "selective",
    ("llr", False): "none",
    ("profile", "hpcc-paper"): "hpcc-ns3",
}
TRUTHS = {
    **dict.fromkeys((True, 1, "1", "true", "yes", "on", "y", "t"), True),
    **dict.fromkeys((False, 0, "0", "false", "no", "off", "n", "f"), False),
}


class Place(NamedTuple):
    """A key in a scenario that has all that it stands in."""

    key: tuple[str, str]  # the model's name, the field's
    path: tuple[str | int, ...]
    field: FieldInfo
    base: int


def models_in(kind: Any) -> Iterator[type[BaseModel]]:
    """The models that values of a type hold."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from models_in(inner)


def all_models(name: str, model: type[BaseModel], seen: set[type[BaseModel]]) -> None:
    for field in model.model_fields.values():
        for inside in (*SECTION_KINDS.get(name, {}).values(), *models_in(field.annotation)):
            if inside not in seen and not inside.__subclasses__():
                seen.add(inside)
                all_models("", inside, seen)


@cache
def bases() -> list[dict[str, Any]]:
    """Scenarios with everything in them, and one of each kind of section."""
    found: list[dict[str, Any]] = [PLAIN]
    found += [drawn(seed, Path(FOLDER.name)).content for seed in range(BASES)]
    found += [PLAIN | {"topology": {"kind": kind}} for kind in SECTION_KINDS["topology"]]
    found += [PLAIN | {"traffic": {"kind": kind}} for kind in SECTION_KINDS["traffic"]]
    return [*found, PLAIN | WITH_A_ROUTER]


def places_in(
    content: Any, model: type[BaseModel], path: tuple[str | int, ...], base: int
) -> Iterator[Place]:
    """Where a scenario has keys, or could have."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        here = (*path, key)
        yield Place((model.__name__, key), here, field, base)
        inside = content.get(key)
        kinds = SECTION_KINDS.get(key, {}) if not path else {}
        if kinds:
            inside = inside or {}
            kind = inside.get("kind", next(iter(kinds)))
            yield from places_in(inside, kinds[kind], here, base)
            continue
        for nested in models_in(field.annotation):
            entries: list[tuple[tuple[str | int, ...], Any]] = [(here, inside or {})]
            if get_origin(field.annotation) is tuple:
                entries = [((*here, at), each) for at, each in enumerate(inside or ())][:1]
            elif get_origin(field.annotation) is dict:
                entries = [((*here, at), each) for at, each in (inside or {}).items()][:1]
            for place, each in entries:
                if isinstance(each, dict) and fits(each, nested):
                    yield from places_in(each, nested, place, base)


def fits(content: Mapping[Any, Any], model: type[BaseModel]) -> bool:
    known = {field.alias or name for name, field in model.model_fields.items()}
    kind = model.model_fields.get("kind")
    return set(content) <= known and (
        kind is None
        or content.get("kind", kind.default) in (kind.default, *get_args(kind.annotation))
    )


@cache
def places() -> dict[tuple[str, str], list[Place]]:
    """By key, where it is."""
    found: dict[tuple[str, str], list[Place]] = {}
    for at, base in enumerate(bases()):
        for place in places_in(base, Scenario, (), at):
            if at <= BASES or place.key not in found:  # what follows stands for what is not drawn
                found.setdefault(place.key, []).append(place)
    return found


def bounds(metadata: Any, kind: Any) -> Iterator[Any]:
    """What a type's notes say of bounds, wherever in it."""
    for note in metadata:
        if isinstance(note, FieldInfo):
            yield from bounds(note.metadata, None)
        elif isinstance(note, annotated_types.BaseMetadata):
            yield from (
                getattr(note, name) for name in ("ge", "gt", "le", "lt") if hasattr(note, name)
            )
            if isinstance(note, annotated_types.MultipleOf):
                yield note.multiple_of
    yield from bounds(getattr(kind, "__metadata__", ()), None) if kind is not None else ()
    for inner in get_args(kind):
        if not isinstance(inner, FieldInfo):
            yield from bounds((), inner)


def texts(field: FieldInfo) -> list[str]:
    """What to write there: each bound, just within, just beyond, and what suits no type."""
    found = list(ODD)
    for bound in bounds(field.metadata, field.annotation):
        for each in (bound, bound - 1, bound + 1, bound * 1.001, bound * 0.999, 2 * bound):
            text = str(int(each)) if float(each).is_integer() else repr(float(each))
            found += [
                text,
                f"[{text}]",
                f"{{3: {text}}}",
                f"{{h1: {text}}}",
                f"{text}ns",
                f"{text}B",
            ]
    for kind in (field.annotation, *get_args(field.annotation)):
        if get_origin(kind) is Literal:
            found += map(str, get_args(kind))
        elif isinstance(kind, type) and issubclass(kind, Enum):
            found += [str(each.value) for each in kind]
    return list(dict.fromkeys(found))


def exact(text: str, *, counts: bool) -> Fraction | None:
    """A quantity with its unit, as written."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([a-z]*)\s*", text, re.IGNORECASE)
    unit = found and (COUNTS if counts and found[2] else UNITS).get(found[2].lower())
    return Fraction(found[1]) * unit if found and unit else None


def same(written: Any, said: Any, key: str) -> bool:
    """Whether a scenario says what was written."""
    if isinstance(written, str | bool) and (key, written) in SAYS:
        return bool(said == SAYS[key, written])
    if isinstance(said, bool):
        word = written.lower() if isinstance(written, str) else written
        return word in TRUTHS and TRUTHS[word] == said
    if isinstance(said, int | float):
        if isinstance(written, bool) or written is None:
            return False
        if isinstance(written, int | float):
            return written == said
        if host := re.fullmatch(r"h(\d+)", written):
            return int(host[1]) - 1 == said
        return any(near(Fraction(said), exact(written, counts=c)) for c in (False, True)) or (
            isinstance(said, float) and float(written) == said
        )
    if isinstance(said, list):
        if not isinstance(written, list) or len(written) != len(said):
            return False
        if all(isinstance(each, int) for each in said):
            written = sorted(written, key=str)
            said = sorted(said, key=str)
        return all(same(a, b, key) for a, b in zip(written, said, strict=True))
    if isinstance(said, dict):
        if isinstance(written, str):  # a name alone is a profile
            return "profile" in said and same(written, said["profile"], "profile")
        by_name = {str(name): value for name, value in said.items()}
        mine = [str(name) for name in written]
        return len({*mine}) == len(mine) and all(
            str(name) in by_name and same(value, by_name[str(name)], str(name))
            for name, value in written.items()
        )
    return bool(written == said)


def near(said: Fraction, meant: Fraction | None) -> bool:
    """Whole, and if that is not what was written no further from it than a thousandth."""
    return meant is not None and 1000 * abs(said - meant) <= meant


def put(content: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The same with another value there."""
    made = copy.deepcopy(content)
    place: Any = made
    for part in path[:-1]:
        place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
    place[path[-1]] = value
    return made


def said_at(scenario: Scenario, path: tuple[str | int, ...]) -> Any:
    said: Any = scenario.model_dump(mode="json")
    for part in path:
        said = said[part if isinstance(said, list) else str(part) if str(part) in said else part]
    return said


MARK = "put-it-here"


def outcomes(place: Place, text: str, folder: Path) -> list[Scenario | str]:
    """A scenario or a message: from the command line, from YAML, and from Python."""
    file = folder / "mine.yaml"
    key = ".".join(map(str, place.path))
    base = bases()[place.base]
    without = yaml.safe_dump(base, sort_keys=False)
    filled = yaml.safe_dump(put(base, place.path, MARK), sort_keys=False).replace(MARK, text)

    def of(content: str, *changes: str, **setting: Any) -> Scenario | str:
        file.write_text(content)
        try:
            if setting:
                return closlab.scenario(file, set={key: setting["value"]})
            return catalogue.load(str(file), changes)
        except LabError as error:
            return f"{error.message} {error.cure or ''}"

    found = [of(without, f"{key}={text}"), of(filled)]
    try:
        value = parse_yaml(text)
    except YamlError:
        return found
    return [*found, of(without, value=value)]


def complaints(place: Place, text: str, folder: Path) -> Iterator[str]:
    """What should not be."""
    found = outcomes(place, text, folder)
    where = f"{'.'.join(map(str, place.path))}={text} (base {place.base})"
    scenarios = [each for each in found if isinstance(each, Scenario)]
    if len(scenarios) not in (0, len(found)):
        yield f"{where}: doors differ: {[str(each)[:150] for each in found]}"
    if place.key[1] not in FILES and any(each != scenarios[0] for each in scenarios[1:]):
        yield f"{where}: doors understand different things"
    for message in {each for each in found if isinstance(each, str)}:
        names = [str(part) for part in place.path if not str(part).isdigit()]
        if not re.search(rf"\b({'|'.join(map(re.escape, names))})\b", message) and not any(
            other in message for other in OTHERS
        ):
            yield f"{where}: it is not named: {message[:200]}"
    if scenarios:
        said = said_at(scenarios[0], place.path)
        written = parse_yaml(text)
        if place.key[1] not in FILES and not same(written, said, place.key[1]):
            yield f"{where}: it says {said!r:.100}"
        yield from lost_in_plans(scenarios[0], where)


def lost_in_plans(scenario: Scenario, where: str) -> Iterator[str]:
    """What is something in a scenario, and nothing in what switches and adapters are told."""
    settings = controller_settings(scenario, scenario.fabric())
    link, schedule = scenario.link, scenario.schedule
    rates = [(link.rate_gbps, GBPS, settings.host_link.rate_bps)]
    rates += [(link.fabric_rate_gbps or link.rate_gbps, GBPS, settings.fabric_link.rate_bps)]
    rates += [(rate, GBPS, settings.schedule.limits[p]) for p, rate in schedule.shape.items()]
    if schedule.port_gbps is not None:
        rates.append((schedule.port_gbps, GBPS, settings.schedule.port_limit))
    for name in CONTROLS:
        section = getattr(scenario.transport, name, None)
        given = values_of(scenario.transport, name)
        for each in CONTROLS[name].parameters:
            if each.kind is Kind.RATE and (mbps := getattr(section, each.key)) is not None:
                rates.append((mbps, MBPS, int(given[f"{name}_{each.name}"])))
    for rate, unit, bits in rates:
        if abs(bits - Fraction(rate) * unit) > 0.51 or (bits == 0) != (rate == 0):
            yield f"{where}: {rate} x {unit} became {bits} bits a second"
    for share in (scenario.telemetry.share, *(loss.share for loss in settings.losses)):
        if (chance_code(share) == 0) != (share == 0):
            yield f"{where}: a share of {share} became none"
    for curve in (settings.ecn, *settings.ecn.classes.values()):
        slope = gradient(curve.kmin, curve.kmax, curve.pmax)
        if curve.kmin > curve.kmax or (slope == 0) != (curve.kmin == curve.kmax or not curve.pmax):
            yield f"{where}: a curve of {curve} became {slope}"
    if settings.lossless.mask != sum(2**each for each in {*scenario.pfc.priorities}):
        yield f"{where}: {settings.lossless} of {scenario.pfc.priorities}"


def tried(cases: list[tuple[Place, str]], folder: Path) -> list[str]:
    return [said for place, text in cases for said in complaints(place, text, folder)]


def lots(count: int, seed: int) -> list[tuple[Place, str]]:
    """Keys in turn, and of each some place and some value, by lot."""
    draw = random.Random(seed)
    keys = list(places().values())
    draw.shuffle(keys)
    made = []
    for at in range(count):
        place = draw.choice(keys[at % len(keys)])
        made.append((place, draw.choice(texts(place.field))))
    return made


def test_every_key_there_is_has_a_place() -> None:
    models: set[type[BaseModel]] = {Scenario}
    all_models("", Scenario, models)
    wanted = {(m.__name__, f.alias or n) for m in models for n, f in m.model_fields.items()}
    missing = {model for model, _ in wanted - set(places())}
    assert not missing


def test_a_key_is_honoured_or_refused_by_name(tmp_path: Path) -> None:
    assert not tried(lots(125, 1), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_thousand_settings_are_honoured_or_refused_by_name(tmp_path: Path, seed: int) -> None:
    assert not tried(lots(1_000, seed), tmp_path)
