"""The run-time's shared object as Python sees it: signatures, and nothing else."""

from __future__ import annotations

import ctypes as c
from functools import cache
from typing import TYPE_CHECKING

from .abi_check import compare
from .build import RUNTIME, runtime_library

if TYPE_CHECKING:
    from pathlib import Path

NEVER = 2**64 - 1
NONE = 2**32 - 1  # no entry, no register, no action
ALL = 2**64 - 1  # every cell of an array
QUEUES = 8
PORTS = 512
LATE_CLASSES = 496

TextFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class Link(c.Structure):
    """struct hosted_link."""

    _fields_ = [("rate", c.c_uint64), ("delay", c.c_uint64), ("overhead", c.c_uint32)]


class Queue(c.Structure):
    """struct hosted_queue."""

    _fields_ = [
        ("priority", c.c_int32),
        ("packets", c.c_int64),
        ("bytes", c.c_int64),
        ("packets_per_s", c.c_int64),
    ]


class Service(c.Structure):
    """struct hosted_service."""

    _fields_ = [
        ("priority", c.c_int32),
        ("classes", c.c_uint32),
        ("quantum", c.c_uint64),
        ("rate", c.c_uint64),
        ("burst", c.c_uint64),
    ]


class Replay(c.Structure):
    """struct llr_config."""

    _fields_ = [
        ("room", c.c_uint64),
        ("timeout", c.c_uint64),
        ("ack_every", c.c_uint64),
        ("selective", c.c_uint64),
    ]


class Credit(c.Structure):
    """struct sw_credit."""

    _fields_ = [
        ("priority", c.c_uint32),
        ("least", c.c_uint32),
        ("cell", c.c_uint32),
        ("credit", c.c_uint32),
        ("ask_after", c.c_uint64),
    ]


class PortInfo(c.Structure):
    """struct hosted_port."""

    _fields_ = [
        ("rx_packets", c.c_uint64),
        ("rx_bytes", c.c_uint64),
        ("tx_packets", c.c_uint64),
        ("tx_bytes", c.c_uint64),
        ("number", c.c_uint32),
        ("is_up", c.c_uint32),
        ("is_attached", c.c_uint32),
        ("unused", c.c_uint32),
        ("rx_missed", c.c_uint64),
        ("queue_packets", c.c_uint64 * QUEUES),
        ("queue_bytes", c.c_uint64 * QUEUES),
    ]


class BookLine(c.Structure):
    """struct book_line."""

    _fields_ = [
        *((name, c.c_uint32) for name in ("book", "kind", "of", "unused")),
        *((name, c.c_uint64) for name in ("packets", "bytes")),
    ]


BOOKS = (  # enum book
    *("in", "changed", "left", "dropped", "held"),
    *("port_in", "port_out", "port_lost", "port_waiting"),
    *("cable_in_lost", "cable_in_added", "cable_in_held"),
    *("cable_out_lost", "cable_out_added", "cable_out_held"),
    *("llr_in_lost", "llr_in_added", "llr_in_held"),
    *("llr_out_lost", "llr_out_added", "llr_out_held"),
)
BOOK_MADE = 10  # books.h


class CableFaults(c.Structure):
    """struct cable_faults."""

    _fields_ = [
        *((name, c.c_uint32) for name in ("corrupt", "duplicate", "reorder", "unused")),
        ("late", c.c_uint64),
    ]


class Reason(c.Structure):
    """struct ctl_reason_text."""

    _fields_ = [("code", c.c_uint32), ("text", c.c_char_p)]


SHARED_RECORDS = (Link, Replay, Credit, Queue, Service, PortInfo, BookLine, CableFaults, Reason)
HEADERS = tuple(
    RUNTIME / f"{name}.h" for name in ("base", "books", "cable", "ctl", "hosted", "llr", "sw")
)

P, U32, U64, I32, B, S = c.c_void_p, c.c_uint32, c.c_uint64, c.c_int32, c.c_bool, c.c_char_p

SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "loop_new": (P, [c.c_double]),
    "loop_free": (None, [P]),
    "loop_start": (B, [P]),
    "loop_stop": (None, [P]),
    "loop_now": (U64, [P]),
    "loop_lateness": (None, [P, P]),
    "loop_late_floor": (U64, [U32]),
    "hosted_new": (P, [P, S, I32, U32, U32, U32, U64]),
    "hosted_load": (B, [P, P, P, U64]),
    "hosted_exchange": (B, [P, P, P]),
    "hosted_free": (None, [P, P]),
    "hosted_write": (c.c_size_t, [P, P, P, c.c_size_t, P, c.c_size_t, B, U64]),
    "hosted_read_entries": (c.c_size_t, [P, P, U32, P, P, c.c_size_t, U64]),
    "hosted_read_entry": (c.c_size_t, [P, P, P, P, U64]),
    "hosted_read_default": (c.c_size_t, [P, P, U32, P, U64]),
    "hosted_read_cells": (c.c_size_t, [P, P, U32, U32, U64, U64, P]),
    "hosted_receive": (U64, [P, P, U32, S, U32, U64]),
    "socket_open": (P, [S, S, c.c_int, P]),
    "socket_tell_arrival_times": (None, [P, P, P]),
    "hosted_add_socket_port": (B, [P, P, U32, P, U64]),
    "hosted_add_memory_port": (B, [P, P, U32, P]),
    "hosted_remove_port": (None, [P, P, U32]),
    "hosted_set_up": (None, [P, P, U32, B, U64]),
    "hosted_set_link": (B, [P, P, U32, Link]),
    "hosted_set_queue": (B, [P, P, U32, P]),
    "hosted_set_service": (B, [P, P, U32, P]),
    "hosted_set_replay": (B, [P, P, U32, P]),
    "hosted_set_credit": (B, [P, P, U32, P]),
    "hosted_share": (B, [P, P, U32, U32]),
    "hosted_keep_times": (B, [P, P, U32]),
    "pcap_on": (P, [c.c_int, B]),
    "pcap_write": (B, [P, S, U32, U32, U64]),
    "pcap_close": (None, [P]),
    "hosted_set_cable": (B, [P, P, U32, U32, P]),
    "hosted_set_pcap": (B, [P, P, U32, B, S]),
    "hosted_set_trace": (None, [P, P, P, P]),
    "hosted_stats": (None, [P, P, P]),
    "hosted_ports": (U32, [P, P, P, U32]),
    "hosted_books": (U32, [P, P, P, P, U32]),
    "hosted_event_fd": (c.c_int, [P]),
    "hosted_drain": (c.c_size_t, [P, P, c.c_size_t]),
    "hosted_abi": (U32, []),
    "hosted_drop_name": (S, [U32]),
    "hosted_reason": (c.POINTER(Reason), [U32]),
    "memory_box_new": (P, []),
    "memory_box_free": (None, [P]),
    "memory_box_take": (P, [P, P]),
    "sw_service": (U64, [P, U64]),
}


@cache
def runtime() -> c.CDLL:
    """The run-time, built if need be."""
    library = c.CDLL(str(runtime_library()), use_errno=True)
    compare(SHARED_RECORDS, HEADERS)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


@cache
def program(path: Path) -> tuple[c.CDLL, int]:
    """A program's shared object and the address of its description."""
    runtime()
    library = c.CDLL(str(path))
    return library, c.addressof(c.c_char.in_dll(library, "sw_program"))


@cache
def drop_names() -> tuple[str, ...]:
    """Why packets are dropped, by number."""
    names: list[str] = []
    while (name := runtime().hosted_drop_name(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


@cache
def reason(number: int) -> tuple[int, str]:
    """Why an operation was refused: a gRPC status code and a text."""
    found = runtime().hosted_reason(number)
    return found.contents.code, found.contents.text.decode()
