"""A SKU's templates, rendered as sonic-cfggen does: a program of its own, with bounds.

    python -m lab.configs.templates SKU_FOLDER COMMON_FOLDER TEMPLATE... < VARIABLES.json

prints a JSON list with each template's text. Templates are strangers' programs: they run in Jinja's
sandbox, in a process that may take some seconds and some memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from files import shown
from lab.errors import ScenarioError

_MAX_S = 20
_MAX_BYTES = 2 << 30
_MAX_TEXT = 32_000_000
_LOCK = "requirements-sonic.lock"


def rendered(
    folder: Path, common: Path, names: list[str], variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The tables that templates of a folder make, together."""
    words = [sys.executable, "-m", __name__, str(folder), str(common), *names]
    cure = f"It is to be a SKU's folder of SONiC's, beside the templates of {shown(common)}."
    try:
        done = subprocess.run(
            words, input=json.dumps(variables), capture_output=True, text=True, check=False,
            timeout=2 * _MAX_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ScenarioError(f"{shown(folder)}: its templates come to no end", cure) from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{shown(folder)}: its templates make no text", cure) from None
    if done.returncode:
        last = (done.stderr.strip() or "they take too long, or too much memory").splitlines()[-1]
        if "No module named 'jinja2'" in last:
            raise ScenarioError(
                "templates need Jinja, which is not installed",
                f"Install it: .venv/bin/python -m pip install -r {_LOCK}; or give a folder of "
                "configurations that are rendered already.",
            )
        said = last.encode("ascii", "backslashreplace").decode()[:200]
        raise ScenarioError(f"{shown(folder)}: its templates cannot be rendered: {said}", cure)
    tables: dict[str, Any] = {}
    for name, text in zip(names, json.loads(done.stdout), strict=True):
        try:
            made = json.loads(text)
        except (ValueError, RecursionError) as error:
            said = str(error)[:120]
            raise ScenarioError(f"{shown(folder / name)} makes no JSON: {said}", cure) from None
        if not isinstance(made, dict):
            raise ScenarioError(f"{shown(folder / name)} makes no tables", cure)
        tables |= made
    return tables


def _by_index(names: list[Any]) -> None:
    """Jinja's filter sort_by_port_index of sonic-cfggen: sorts in place; backplanes come last."""
    names.sort(
        key=lambda name: (
            "BP" in str(name),
            int("".join(c for c in str(name) if c.isdigit()) or 0),
        )
    )


def main() -> int:
    """Render what is named."""
    from jinja2 import FileSystemLoader, TemplateError, TemplateNotFound
    from jinja2.sandbox import SandboxedEnvironment

    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_S, _MAX_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    folder, common, *names = sys.argv[1:]
    loader = FileSystemLoader([folder, common])
    environment = SandboxedEnvironment(loader=loader, trim_blocks=True)

    def is_there(name: str) -> bool:
        try:
            loader.get_source(environment, name)
        except TemplateNotFound:
            return False
        return True

    environment.filters["sort_by_port_index"] = _by_index
    environment.globals["template_exists"] = is_there
    environment.globals["is_smartswitch"] = False
    variables = json.load(sys.stdin)
    try:
        texts = [environment.get_template(name).render(variables) for name in names]
    except TemplateNotFound as error:
        print(f"there is no template {error}", file=sys.stderr)
        return 1
    except (TemplateError, RecursionError, MemoryError, OSError, ValueError, TypeError,
            LookupError, AttributeError, ArithmeticError) as error:  # fmt: skip
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return 1
    if sum(map(len, texts)) > _MAX_TEXT:
        print("they make too much text", file=sys.stderr)
        return 1
    json.dump(texts, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
