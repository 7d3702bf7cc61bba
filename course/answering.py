"""What a student's file in Python answers, a line of JSON for each line that asks.

It imports nothing of closlab's: where it runs there may be nothing but Python's own library.
"""

import json
import traceback
import types
from collections.abc import Callable, Iterator

READY = "null"


def answers(lines: Iterator[str]) -> Iterator[str]:
    """That it is ready; what became of the file, named and given by the first line; then what
    functions return, each named with its arguments by a line."""
    yield READY
    path, source = json.loads(next(lines))
    module = types.ModuleType("submission")
    module.__file__ = path

    def load() -> None:
        exec(compile(source.encode("latin-1"), path, "exec"), vars(module))  # noqa: S102

    yield _answered(load, path)
    for line in lines:
        name, arguments = json.loads(line)
        yield _answered(lambda: getattr(module, name)(*arguments), path)  # noqa: B023


def _answered(act: Callable[[], object], path: str) -> str:
    try:
        return json.dumps({"value": act()})
    except BaseException as error:  # whatever is raised there is an answer
        problem = f"{type(error).__name__}: {error}"[:300]
        return json.dumps({"error": problem, "line": _place(error, path)})


def _place(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    found = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in found if frame.filename == path]
    return lines[-1] if lines else None
