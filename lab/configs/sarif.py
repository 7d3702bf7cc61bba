"""Findings for code scanners: SARIF 2.1.0 (OASIS)."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from files import FileError, read_text
from lab.configs.book import BOOK
from lab.configs.fabric import Fabric
from lab.configs.findings import Finding, Level
from lab.configs.proofs import Proof

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Level.FAULT: "error", Level.FINDING: "warning", Level.ADVICE: "note"}
_MAX_BYTES = 32_000_000


def sarif(
    fabric: Fabric | None, source: Path, pairs: list[tuple[Finding, Proof | None]]
) -> dict[str, Any]:
    """One run, and a result for each finding; places are lines of the configurations."""
    names = sorted(BOOK)
    lines: dict[Path, list[str]] = {}
    return {
        "$schema": _SCHEMA, "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "closlab", "version": version("closlab"),
                "rules": [{
                    "id": name, "shortDescription": {"text": BOOK[name].title},
                    "help": {"text": f"{BOOK[name].title}. See {BOOK[name].reference}."},
                } for name in names],
            }},
            "columnKind": "unicodeCodePoints",
            "results": [
                _result(fabric, source, finding, proof, names.index(finding.rule), lines)
                for finding, proof in pairs
            ],
        }],
    }  # fmt: skip


def _result(
    fabric: Fabric | None, source: Path, finding: Finding, proof: Proof | None, index: int,
    lines: dict[Path, list[str]],
) -> dict[str, Any]:  # fmt: skip
    file = fabric.file_of(finding) if fabric else source
    if file not in lines:
        try:
            lines[file] = read_text(file, _MAX_BYTES).splitlines()
        except FileError:
            lines[file] = []  # a folder of templates, or a scenario by its name
    line = fabric.line_of(finding) if fabric else None
    at = _line(lines[file], finding) if line is None else line
    said = f"{finding.what}. Then {finding.consequence}. {finding.cure}"
    properties: dict[str, Any] = {"patch": {name: list(ops) for name, ops in finding.patch.items()}}
    if proof is not None:
        properties["proof"] = proof.content()
    place = f"{finding.switch}/{finding.table}/{finding.key}"
    return {
        "ruleId": finding.rule, "ruleIndex": index, "level": _LEVELS[finding.level],
        "message": {"text": said},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": quote(file.as_posix())}, "region": {"startLine": at},
            },
            "logicalLocations": [{"fullyQualifiedName": place}],
        }],
        "partialFingerprints": {
            "place/v1": hashlib.sha256(f"{finding.rule} {place}".encode()).hexdigest()[:32]
        },
        "properties": properties,
    }  # fmt: skip


def _line(lines: list[str], finding: Finding) -> int:
    """Where an entry stands; or its table; or the file."""
    found = 1
    words = [finding.table, finding.key]
    if "|" in finding.key and not any(f'"{finding.key}"' in line for line in lines):
        words[1:] = finding.key.split("|")
    at = 0
    for word in words:
        at = next((n for n in range(at, len(lines)) if f'"{word}"' in lines[n]), -1)
        if at < 0:
            break
        found = at + 1
    return found
