"""The keys of a scenario, as the models that check them describe them.

A key is named as ``--set`` takes it: ``pfc.enabled``; within a list ``faults[].at_ns``, where the
entry's number takes the brackets' place. Some sections are of one of several kinds, and each kind
has keys of its own.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import annotated_types
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from params.classes import ClassSet
from params.data import Data
from params.shares import Alpha
from params.units import Count, DurationNs, Host, Size, written

Kinds = Mapping[str, Mapping[str, type[BaseModel]]]  # by section: the models of its kinds

_HOST = get_args(Host)[1]
_MAX_LISTED = 16  # keys in a message
_ENTRY = re.compile(r"\.\d+(?=\.|$)")  # an entry's number, as in faults.0.link
_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
_SECTION = "a section"
_READ = {
    get_args(Size)[1]: "bytes, such as 16KB or 4MB",
    get_args(DurationNs)[1]: "a time, such as 50us or 3ms",
    get_args(Count)[1]: "a number, such as 70B or 1.5T",
    _HOST: "a host, such as h1",
}
_UNITS = {get_args(Size)[1]: "B", get_args(DurationNs)[1]: "ns", get_args(Count)[1]: ""}
_POWER = get_args(Alpha)[1]


class Values(Data):
    """What a key takes, for who offers it: one of some, or a number within bounds."""

    choices: tuple[str, ...] = ()
    unit: str | None = None  # of a number: B, ns or none; None: it is no number
    is_whole: bool = False
    least: float = -math.inf
    most: float = math.inf
    is_power: bool = False  # of two
    step: int = 1  # of which whole numbers are multiples


class Key(Data):
    """One key, or a section of them."""

    name: str
    kind: str | None  # of which kind its section has to be, if there are several
    takes: str
    default: str | None  # empty: nothing; None: it must be given
    about: str
    is_section: bool
    values: Values = Values()


def keys_of(model: type[BaseModel], kinds: Kinds, prefix: str = "") -> Iterator[Key]:
    """All keys, sections before what is in them."""
    return _keys_of(model, kinds, prefix, None)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that may have been meant, as the end of a sentence."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


def nearest_key(place: str, known: Iterable[str]) -> str:
    """The same for a key: of those beside it, or all of these if none is like it."""
    section, _, last = place.rpartition(".")
    within = without_numbers(section)
    beside = list(
        dict.fromkeys(name.rpartition(".")[2] for name in known if _section(name) == within)
    )
    near = difflib.get_close_matches(last, beside, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{section}.{near[0]}'?" if section else nearest(last, near)
    is_short = section and 0 < len(beside) <= _MAX_LISTED
    return f"; {section} has {', '.join(beside)}" if is_short else ""


def without_numbers(place: str) -> str:
    """An entry of a list as its key: ``faults.0.link`` is ``faults[].link``."""
    return _ENTRY.sub("[]", place)


def _section(name: str) -> str:
    return name.rpartition(".")[0]


def _keys_of(model: type[BaseModel], kinds: Kinds, prefix: str, kind: str | None) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        whole = prefix + (field.alias or name)
        if kind is not None and whole.count(".") == 1 and name == "kind":
            continue  # told once, of the section
        members = kinds.get(whole, {})
        inside, is_list = _model_in(field.annotation)
        is_section = bool(members) or inside is not None
        yield Key(
            name=whole,
            kind=kind,
            takes=_takes(field, is_section=is_section, is_list=is_list),
            default=_default(field),
            about=about(model, name),
            is_section=is_section,
            values=Values() if is_section else _values(field),
        )
        if members:
            yield Key(
                name=f"{whole}.kind",
                kind=None,
                takes="one of " + ", ".join(members),
                default=next(iter(members)),
                about="Which keys there are besides.",
                is_section=False,
            )
            for title, member in members.items():
                yield from _keys_of(member, kinds, f"{whole}.", title)
        elif inside is not None:
            yield from _keys_of(inside, kinds, f"{whole}[]." if is_list else f"{whole}.", kind)


def about(model: type[BaseModel], name: str) -> str:
    """What is said of a field: with it, or by the string that stands below it."""
    described = model.model_fields[name].description
    if described is not None:
        return described
    for owner in model.__mro__:
        found = _said_in(owner.__module__).get((owner.__qualname__, name))
        if found is not None:
            return " ".join(found.split())
    return ""


@cache
def _said_in(module: str) -> Mapping[tuple[str, str], str]:
    """The strings below fields of a module's classes.

    Models could be told to keep these themselves, and would look for them whenever anything starts.
    """
    source = getattr(sys.modules[module], "__file__", None)
    found = {}
    tree = ast.parse(Path(source).read_text() if source else "")
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, below in pairwise(node.body):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                name, said = field.target, below.value
                if isinstance(name, ast.Name) and isinstance(said, ast.Constant):
                    found[node.name, name.id] = str(said.value)
    return found


def _model_in(kind: Any) -> tuple[type[BaseModel] | None, bool]:
    """The one model that a value of this type holds, and whether it holds a list of them."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind, False
    is_list = get_origin(kind) is tuple
    members = [m for m in get_args(kind) if m not in (NoneType, Ellipsis)]
    if get_origin(kind) is Annotated:
        members = members[:1]
    if len(members) != 1:
        return None, False
    found, nested = _model_in(members[0])
    return found, is_list or nested


def _takes(field: FieldInfo, *, is_section: bool, is_list: bool) -> str:
    """What may be written there."""
    if is_section:
        return "a list of sections" if is_list else _SECTION
    bounds = list(field.metadata)
    words = _words(field.annotation, bounds)
    return words + _range(bounds)


def _words(kind: Any, metadata: list[Any]) -> str:
    """A type in words; what it was annotated with goes to the metadata."""
    for note in metadata:
        if isinstance(note, BeforeValidator) and note in _READ:
            return _READ[note]
    kind = getattr(kind, "written", kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        metadata += inner[1:]
        return _words(inner[0], metadata)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin in (Union, UnionType):
        words = [_words(member, metadata) for member in inner if member is not NoneType]
        return " or ".join(dict.fromkeys(words))
    if origin is tuple:
        each = _words(inner[0], [])
        return "a list of sections" if each == _SECTION else f"a list, each {each}"
    if origin is dict:
        by = "by name" if inner[0] is str else "by number"
        return f"{by} {_words(inner[1], [])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return _PLAIN.get(kind, _SECTION)


def _values(field: FieldInfo) -> Values:
    """The same, for who offers it."""
    bounds = list(field.metadata)
    kind = _inmost(field.annotation, bounds)
    notes = list(_flat(bounds))
    if get_origin(kind) is Literal:
        return Values(choices=tuple(map(str, get_args(kind))))
    if kind is bool:
        return Values(choices=("true", "false"))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Values(choices=tuple(str(member.value) for member in kind))
    if kind not in (int, float) or any(note is _HOST for note in notes):
        return Values()
    unit, least, most, step = "", -math.inf, math.inf, 1
    for note in notes:
        match note:
            case BeforeValidator() if note in _UNITS:
                unit = _UNITS[note]
            case annotated_types.Ge(ge=bound) | annotated_types.Gt(gt=bound):
                least = max(least, cast("float", bound))
            case annotated_types.Le(le=bound) | annotated_types.Lt(lt=bound):
                most = min(most, cast("float", bound))
            case annotated_types.MultipleOf(multiple_of=unit_of):
                step = cast("int", unit_of)
    is_power = any(note is _POWER for note in notes)
    return Values((), unit, kind is int, least, most, is_power, step)


def _inmost(kind: Any, metadata: list[Any]) -> Any:
    """A type without what it was annotated with, which goes to the metadata, and without None; of
    several the first."""
    kind = getattr(kind, "written", kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        metadata += inner[1:]
        return _inmost(inner[0], metadata)
    if origin in (Union, UnionType):
        return _inmost(next(member for member in inner if member is not NoneType), metadata)
    return kind


def _range(metadata: list[Any]) -> str:
    """The bounds of a value, in words."""
    parts = []
    for note in _flat(metadata):
        match note:
            case annotated_types.Ge(ge=least) if least:
                parts.append(f"at least {_plain(least, metadata)}")
            case annotated_types.Gt(gt=below):
                parts.append(f"more than {_plain(below, metadata)}")
            case annotated_types.Le(le=most):
                parts.append(f"at most {_plain(most, metadata)}")
            case annotated_types.Lt(lt=above):
                parts.append(f"less than {_plain(above, metadata)}")
            case annotated_types.MultipleOf(multiple_of=unit):
                parts.append(f"a multiple of {unit}")
    return "".join(f", {part}" for part in parts)


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    """Annotations, those of a field inside an annotation included."""
    for note in metadata:
        if isinstance(note, FieldInfo):
            yield from _flat(note.metadata)
        else:
            yield note


def _default(field: FieldInfo) -> str | None:
    """What holds if nothing is written."""
    if field.is_required():
        return None
    value = field.default
    if isinstance(value, ClassSet):
        value = tuple(value)
    if value is None or value in ((), {}, ""):
        return ""
    if isinstance(value, BaseModel):
        return "as its keys have it"
    metadata: list[Any] = list(field.metadata)
    _words(field.annotation, metadata)  # for what the type was annotated with
    if isinstance(value, tuple):
        kind = getattr(field.annotation, "written", field.annotation)
        _words(get_args(kind)[0], metadata)
        return f"[{', '.join(_plain(each, metadata) for each in value)}]"
    return _plain(value, metadata)


def _plain(value: Any, metadata: Iterable[Any]) -> str:
    """A value as one would write it."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    metadata = list(metadata)
    if _HOST in metadata:
        return f"h{value + 1}"
    unit = next((_UNITS[n] for n in metadata if isinstance(n, BeforeValidator) and n in _UNITS), "")
    if unit and isinstance(value, int) and not (said := written(value, unit)).isdigit():
        return said
    return f"{value:,}" if isinstance(value, int) else str(value)
