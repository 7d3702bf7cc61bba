"""Frames from anybody: the corpus, and what is changed from it by lot, under gcc's sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fuzz.frames import SEEDS, corpus_of
from tests.switch.sanitized import environment
from tests.switch.test_sanitized import needs_sanitizers

ROOT = Path(__file__).resolve().parents[2]


def play(target: str, count: int, seed: int, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.frames", target, str(count), str(seed)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.split()[0] == str(len(corpus_of(target)) + count)


@pytest.mark.slow
@needs_sanitizers
def test_frames_into_an_adapter() -> None:
    play("endpoint", 300, 1, environment())


def test_frames_into_switches() -> None:
    """Without sanitizers, under which the fabric program takes half a minute to build."""
    play("switch", 5000, 1, os.environ)


@needs_sanitizers
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", SEEDS)
def test_a_million_inputs(target: str) -> None:
    """Of one frame, or of many."""
    play(target, 1_000_000, 2, environment())
