"""gRPC where there are no sockets: names that P4Runtime's library mentions, and nobody uses."""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

__version__ = "1"
_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
    *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
)
StatusCode: Any = enum.Enum(  # type: ignore[misc]  # of names that are told
    "StatusCode", {name: (at, name.lower().replace("_", " ")) for at, name in enumerate(_CODES)}
)


class _Nothing(Exception):  # noqa: N818 - a class to be named, derived from and caught
    def __class_getitem__(cls, _: object) -> type[_Nothing]:
        return cls


class _Absent(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _nothing(name)


def _nothing(name: str) -> type[_Nothing]:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (_Nothing,), {})


def __getattr__(name: str) -> Any:
    return _nothing(name)


aio, _utilities = _Absent("grpc.aio"), _Absent("grpc._utilities")
_utilities.first_version_is_lower = lambda _one, _other: False  # type: ignore[attr-defined]
sys.modules |= {module.__name__: module for module in (aio, _utilities)}
