"""A grade in words, and as machines take it: JSON, JUnit's XML, Gradescope's results.json."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from xml.etree import ElementTree

from course.verdict import Grade, Judged, State

_SIGNS = {State.PASSED: "ok", State.WRONG: "WRONG", State.NOT_JUDGED: "-"}


def text(grade: Grade) -> str:
    """For people."""
    lines = [f"Lesson {grade.title}"]
    for verdict in grade.verdicts:
        lines.append(
            f"  {_SIGNS[verdict.state]:6}{verdict.says} ({verdict.earned}/{verdict.points})"
        )
        if verdict.state is State.WRONG:
            lines.append(textwrap.indent(verdict.what, " " * 8))
            lines.append(textwrap.indent(verdict.where, " " * 8 + "look: "))
    lines.append(f"{grade.score} of {grade.most} points" + (": all of it" if grade.passed else ""))
    return "\n".join(lines)


def as_json(grade: Grade) -> str:
    """All of it, by name."""
    content = {
        "schema": "closlab.grade/1",
        "lesson": grade.lesson,
        "score": grade.score,
        "max_score": grade.most,
        "passed": grade.passed,
        "checks": [
            {
                "check": verdict.says,
                "state": verdict.state.value,
                "score": verdict.earned,
                "max_score": verdict.points,
                "what": verdict.what,
                "where": verdict.where,
                "seconds": verdict.seconds,
            }
            for verdict in grade.verdicts
        ],
    }
    return json.dumps(content, indent=2)


def junit(grade: Grade) -> str:
    """As continuous integration shows tests."""
    states = [verdict.state for verdict in grade.verdicts]
    suite = ElementTree.Element(
        "testsuite",
        name=grade.lesson,
        tests=str(len(states)),
        failures=str(states.count(State.WRONG)),
        errors="0",
        skipped=str(states.count(State.NOT_JUDGED)),
        time=f"{sum(verdict.seconds for verdict in grade.verdicts):.3f}",
    )
    for verdict in grade.verdicts:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=grade.lesson,
            name=verdict.says,
            time=f"{verdict.seconds:.3f}",
        )
        if verdict.state is State.WRONG:
            failure = ElementTree.SubElement(case, "failure", message=_plain(verdict.what))
            failure.text = _plain(_output(verdict))
        elif verdict.state is State.NOT_JUDGED:
            ElementTree.SubElement(case, "skipped", message=verdict.what)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def gradescope(grade: Grade) -> str:
    """What its autograder expects in results/results.json."""
    content = {
        "score": grade.score,
        "max_score": grade.most,
        "output": f"Lesson {grade.title}",
        "output_format": "text",
        "tests": [
            {
                "name": verdict.says,
                "score": verdict.earned,
                "max_score": verdict.points,
                "status": "passed" if verdict.state is State.PASSED else "failed",
                "output": _output(verdict),
            }
            for verdict in grade.verdicts
        ],
    }
    return json.dumps(content, indent=2)


def _output(verdict: Judged) -> str:
    return "\n".join(filter(None, (verdict.what, verdict.where)))


def _plain(words: str) -> str:
    """What XML can hold."""
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in words)


FORMATS: Mapping[str, Callable[[Grade], str]] = {
    "text": text,
    "json": as_json,
    "junit": junit,
    "gradescope": gradescope,
}
