"""What is said by OTG's models, in JSON or protobuf, and what is answered where it makes no sense.

Messages are OTG's own, from the package snappi: its protobuf tells which names there are, its
Python classes what values may be. What is wrong with a message is told all at once, with its place.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from snappi import snappi as models

from doors.nesting import is_deeper
from doors.tester.supported import is_supported

MAX_BYTES = 16 << 20  # of a request
_MAX_DEPTH = 64
_MAX_LISTED = 20
_SHOWN = 60  # characters of a value that is wrong
MAC = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F: ]+")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_M = TypeVar("_M", bound=Message)


class Refused(Exception):  # noqa: N818  (what the protocol calls Error)
    """A request that is not carried out: OTG's Error."""

    def __init__(self, code: int, *errors: str, kind: str = "validation") -> None:
        super().__init__("; ".join(errors))
        self.code = code
        self.kind = kind
        self.errors = errors

    def as_json(self) -> dict[str, Any]:
        """As the model has it."""
        return {"code": self.code, "kind": self.kind, "errors": list(self.errors)}


def wrong(*errors: str) -> Refused:
    """Something makes no sense."""
    return Refused(400, *errors)


def missing(*errors: str) -> Refused:
    """Something makes sense, and is not there."""
    return Refused(501, *errors)


def read(kind: type[_M], body: bytes) -> _M:
    """A message from JSON, which may hold anything."""
    if len(body) > MAX_BYTES:
        raise Refused(413, f"a request may have {MAX_BYTES:,} bytes")
    if is_deeper(body, _MAX_DEPTH):
        raise wrong(f"a request may nest {_MAX_DEPTH} brackets")
    try:
        content = json.loads(body)
        json.dumps(content, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError):
        raise wrong("this is not JSON") from None
    if not isinstance(content, dict):
        raise wrong(f"this is no object, as {kind.DESCRIPTOR.name} is")
    try:
        found = json_format.ParseDict(content, kind())
    except (json_format.ParseError, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise wrong(f"{kind.DESCRIPTOR.name}: {_short(str(error), 300)}") from None
    return found


def as_json(message: Message) -> dict[str, Any]:
    """A message as JSON has it; clients ask how many warnings there are, even if there are none."""
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=message.DESCRIPTOR.name == "Warning",
    )


def check(message: Message) -> None:
    """Refuse what the model does not allow, or what is not there."""
    problems: list[str] = []
    unknown: list[str] = []
    for is_wrong, text in _problems(message, ""):
        (problems if is_wrong else unknown).append(text)
    if problems:
        raise wrong(*problems[:_MAX_LISTED])
    if unknown:
        raise missing(*(f"{text} is not there in closlab" for text in unknown[:_MAX_LISTED]))


def chosen(message: Message) -> str:
    """Which of a message's alternatives holds: what it says, what is set, or the usual one."""
    if message.HasField("choice") and (said := word(message, "choice")):
        return said
    names = _words(message, "choice").values_by_name
    found = [field.name for field, _ in message.ListFields() if field.name in names]
    if len(found) > 1:
        raise wrong(f"{message.DESCRIPTOR.name}: it is one of {' and '.join(found)}")
    return found[0] if found else str(_model(message)._DEFAULTS.get("choice", ""))


def word(message: Message, field: str) -> str:
    """The name of a value of an enumeration; empty if there is none."""
    known = _words(message, field).values_by_number.get(getattr(message, field))
    return "" if known is None or known.name == "unspecified" else str(known.name)


def value(message: Message, field: str) -> Any:
    """A field, or the model's default for it."""
    if message.HasField(field):
        return getattr(message, field)
    return _model(message)._DEFAULTS.get(field, getattr(message, field))


def words(message: Message, field: str) -> list[str]:
    """The names of values of an enumeration, where there may be several."""
    known = _words(message, field).values_by_number
    return [str(known[number].name) for number in getattr(message, field)]


def _words(message: Message, field: str) -> Any:
    return message.DESCRIPTOR.fields_by_name[field].enum_type


def _model(message: Message) -> Any:
    return getattr(models, message.DESCRIPTOR.name, models.Error)


def _problems(message: Message, place: str) -> Iterator[tuple[bool, str]]:
    """What is wrong (True) or not there (False), in a message and all that it consists of."""
    model, name = _model(message), message.DESCRIPTOR.name
    here = place or name
    for needed in model._REQUIRED:
        is_set = dict(model._TYPES).get(needed) is not None and _is_set(message, needed)
        if not is_set:
            yield True, f"{here}: {needed} is missing"
    for field, content in message.ListFields():
        where = f"{place}.{field.name}" if place else field.name
        if not is_supported(name, field.name):
            # Clients say what is usual without having been asked for anything else.
            if field.is_repeated or content != model._DEFAULTS.get(field.name):
                yield False, where
            continue
        many = content if field.is_repeated else [content]
        rules = model._TYPES.get(field.name, {})
        for number, one in enumerate(many):
            spot = f"{where}[{number}]" if field.is_repeated else where
            if isinstance(one, Message):
                yield from _problems(one, spot)
            elif field.enum_type is not None:
                yield from _enumerated(field, one, name, spot)
            elif (complaint := _complaint(one, rules, field.name)) is not None:
                yield True, f"{spot}: {complaint}"


def _is_set(message: Message, field: str) -> bool:
    descriptor = message.DESCRIPTOR.fields_by_name[field]
    if descriptor.is_repeated:
        return len(getattr(message, field)) > 0
    return message.HasField(field) and getattr(message, field) != ""


def _enumerated(
    field: FieldDescriptor, number: int, name: str, spot: str
) -> Iterator[tuple[bool, str]]:
    known: Any = field.enum_type
    if not number or number not in known.values_by_number:
        yield True, f"{spot}: there is no value {number}"
    elif not is_supported(f"{name}.{field.name}", known.values_by_number[number].name):
        yield False, f"{spot} '{known.values_by_number[number].name}'"


def _complaint(given: Any, rules: dict[str, Any], name: str) -> str | None:
    """What a value breaks of the model's rules."""
    if isinstance(given, str):
        form = rules.get("format") or rules.get("itemformat")
        if name == "bytes":
            form = "hex"
        if name == "name" and not _NAME.fullmatch(given):
            return f"'{_short(given)}' is no name: up to 200 characters, none of them a control"
        return None if _has_form(given, form) else f"'{_short(given)}' is no {form}"
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    if not math.isfinite(given):
        return "it is no number"
    least, most = rules.get("minimum"), rules.get("maximum")
    if least is not None and given < least:
        return f"{given} is less than {least}"
    return f"{given} is more than {most}" if most is not None and given > most else None


def _has_form(text: str, form: str | None) -> bool:
    match form:
        case "mac":
            return MAC.fullmatch(text) is not None
        case "ipv4":
            return _is_address(text, 4)
        case "ipv6":
            return _is_address(text, 6)
        case "hex":
            return _HEX.fullmatch(text) is not None
        case _:
            return True


def _is_address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version and "%" not in text
    except ValueError:
        return False


def _short(text: str, most: int = _SHOWN) -> str:
    clean = "".join(sign if sign.isprintable() else "?" for sign in text)
    return clean if len(clean) <= most else clean[: most - 3] + "..."
