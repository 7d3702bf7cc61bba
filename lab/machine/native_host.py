"""The programs that are a host's adapters under the real clock, built once and kept."""

from __future__ import annotations

from pathlib import Path

from lab.machine.building import building
from switch import build
from traffic.endpoint import NIC_SOURCE, PROGRAM_SOURCES, STRETCH_SOURCE
from traffic.nccl_tests import RANK_SOURCE
from traffic.tester import SOURCES as TESTER_SOURCES
from traffic.verbs import CLOCK_SOURCE, LIBRARIES

_CLOCK_SOURCE = Path(__file__).with_name("clock.c")
# What switches and hosts tell each other beside a cable is laid out in one place (arrival_times.h).
_INCLUDES = ["-iquote", str(build.RUNTIME)]  # of which a digest has the text, not the place
_FLAGS = ["-std=gnu11", "-O2", "-g1", "-ffp-contract=off", "-Wall", "-Wextra"]


def endpoint_program() -> Path:
    """A host's RoCEv2 adapter."""
    return _built("host", PROGRAM_SOURCES, "-lm", "-ldl")


def nic_program() -> Path:
    """The adapter that programs of others send through."""
    return _built("nic", (NIC_SOURCE,))


def nccl_rank_program() -> Path:
    """A rank of a collective that calls NCCL's network plugin."""
    abi = CLOCK_SOURCE.with_name("nccl_abi.h")
    words = ("-iquote", str(abi.parent), "-ldl")
    return _built("nccl-rank", (RANK_SOURCE,), *words, also=(abi.read_bytes(),))


def tester_program() -> Path:
    """A port of a traffic generator; captures are written as switches write theirs."""
    lent = [build.RUNTIME / f"{name}.h" for name in ("base", "arena", "pcap")]
    headers = [*sorted((TESTER_SOURCES[-1].parent).glob("*.h")), *lent]
    texts = tuple(path.read_bytes() for path in headers)
    writers = (build.RUNTIME / f"{name}.c" for name in ("arena", "pcap"))
    return _built("tester", (*TESTER_SOURCES, *writers), also=texts)


def stretch_library() -> Path:
    """What makes programs of others compute more slowly."""
    return _built("stretch", (STRETCH_SOURCE,), "-shared", "-fPIC", "-ldl")


def fabric_clock_library() -> Path:
    """What makes the clocks of a program the fabric's."""
    return _built("fabric-clock", (CLOCK_SOURCE,), "-shared", "-fPIC", "-pthread", "-ldl")


def verbs_libraries() -> dict[str, Path]:
    """By the names that programs know them by, the libraries that are an adapter of verbs."""
    found: dict[str, Path] = {}
    for library in LIBRARIES:
        exports = (f"-Wl,-soname,{library.name}", f"-Wl,--version-script={library.exports}")
        needed = [str(found[name]) for name in library.needs]
        words = ("-shared", "-fPIC", *exports, *library.words, *needed)
        text = library.exports.read_bytes()
        found[library.name] = _built(library.name, library.sources, *words, also=(text,))
    return found


def clock_library() -> Path:
    """What lets the clock that can be set jump, for a program and all that it starts."""
    return _built("clock", (_CLOCK_SOURCE,), "-shared", "-fPIC", "-ldl")


def _built(what: str, sources: tuple[Path, ...], *words: str, also: tuple[bytes, ...] = ()) -> Path:
    headers = [*sorted(sources[0].parent.rglob("*.h")), *build.LENT]
    texts = (*(path.read_bytes() for path in (*sources, *headers)), *also)
    name = f"{what}-{build.digest(build.compiler_id(), *_FLAGS, *words, *texts)}"
    with building(f"the program '{what}'"):
        return build.compiled(name, sources, words, [*_FLAGS, *_INCLUDES])
