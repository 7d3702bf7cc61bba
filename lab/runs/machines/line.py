"""What is said between who leads a run and its members: lines of JSON, and of what kind.

A line is an object with one key, which says what it is: `{"ping": 3}`. Answers to pings are given
by a thread, since both ends go by them: who hears nothing for long takes the other for gone.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import threading
from enum import EnumType
from importlib import import_module
from typing import Any

SILENT_S = 20.0  # on a machine that is not slow: then the other end is gone
PING_EVERY_S = 1.0
# Of what is measured, where what it is made of comes from.
_KNOWN = ("lab.results.", "lab.engines.mininet.endpoints", "lab.scenario.", "traffic.",
          "topologies.", "controller.", "params.")  # fmt: skip
_PLAIN = {("collections", "Counter"), ("array", "_array_reconstructor"), ("array", "array")}


class Out:
    """A descriptor that lines are written to, whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, kind: str, content: object = None) -> None:
        """One line; an OSError says that nobody hears it."""
        text = memoryview(json.dumps({kind: content}).encode() + b"\n")
        with self._lock:
            while text:
                text = text[os.write(self._descriptor, text) :]


def parsed(line: bytes) -> tuple[str, Any]:
    """What a line says; a ValueError if it is none of ours."""
    found = json.loads(line)
    if not isinstance(found, dict) or len(found) != 1:
        raise ValueError("no line of ours")
    return next(iter(found.items()))


def packed(measured: object) -> str:
    """Something measured, for a line."""
    return base64.b64encode(pickle.dumps(measured, pickle.HIGHEST_PROTOCOL)).decode()


def unpacked(text: str) -> Any:
    """The same again: objects of the lab's, and nothing that does anything."""
    return _Known(io.BytesIO(base64.b64decode(text))).load()


def _of_enumeration(which: Any, name: str) -> Any:
    if isinstance(which, EnumType):
        return which[name]
    raise pickle.UnpicklingError(f"{name} is of no enumeration")


class _Known(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Records alone: no function that could be called, and no class that is not the lab's."""
        if (module, name) == ("builtins", "getattr"):  # by which enumerations are kept
            return _of_enumeration
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        if f"{module}.".startswith(_KNOWN) and "." not in name:
            found = getattr(import_module(module), name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is nothing that is measured")
