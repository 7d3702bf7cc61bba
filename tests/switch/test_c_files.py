"""The files of a generated program: each holds what it is named after, and none is endless."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.machine import program
from lab.machine.paths import FABRIC_PROGRAM as P4
from switch import build, codegen
from switch.c_files import apart, joined
from switch.read import read_program

MAX_LINES = 5000
NAMES = st.from_regex(r"[a-z]{1,8}\.[ch]", fullmatch=True)
TEXTS = st.lists(st.sampled_from(["int a;", "/* ---- */", "#if 0", "/* a ---- */", ""]))


@given(st.dictionaries(NAMES, TEXTS))
def test_what_is_joined_comes_apart(parts: dict[str, list[str]]) -> None:
    meant = {name: "\n\n".join(filter(None, texts)) for name, texts in parts.items()}
    found = {name: text.rstrip("\n") for name, text in apart(joined(parts))}
    assert found == {name: text for name, text in meant.items() if text}


def test_actions_lie_in_the_file_that_their_p4_is_called(tmp_path: Path) -> None:
    parts = dict(
        apart(codegen.generate(read_program(program.build(tmp_path, P4).json.read_bytes())))
    )
    traced = {name: set(re.findall(r'"\s+(\w+)\.p4:\d+:', text)) for name, text in parts.items()}
    of_p4 = {name for name in parts if name.startswith("actions-")}
    assert of_p4 <= {f"actions-{path.stem}.c" for path in P4.parent.glob("*.p4")}
    assert {"actions-path.c", "actions-pause.c", "actions-buffer.c"} <= of_p4
    for name in of_p4:  # an action may end with what another file says
        assert name.removeprefix("actions-").removesuffix(".c") in traced[name]
    assert max(len(text.splitlines()) for text in parts.values()) < MAX_LINES


def test_a_long_program_is_kept_in_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(name: str, make: Callable[[Path], object]) -> Path:
        place = tmp_path / name
        make(place)
        return place

    monkeypatch.setattr(build, "kept", kept)
    monkeypatch.setattr(build, "_LONG", 20)
    text = joined({"one.h": ["int one;"], "two.c": ["int two;", "int three;"]})
    main, folders = build._written("p4-whole", text)
    assert folders == []
    names = re.findall(r'^#include "(\S+)"$', main.read_text(), re.MULTILINE)
    assert [name.partition("-")[0] for name in names] == ["one", "two"]
    assert "".join((tmp_path / name).read_text() for name in names).split() == [
        word for _, part in apart(text) for word in part.split()
    ]
    assert build._written("p4-short", "int one;")[0].read_text() == "int one;"
