"""``closlab list``: the scenarios that ship."""

from __future__ import annotations

import json
import textwrap
from typing import Annotated

import typer

from lab.commands.options import Json
from lab.scenario import shipped


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Tell all of these.")] = None,
    is_json: Json = False,
) -> None:
    """List the scenarios that ship; of those named, what to watch."""
    if names:
        from lab.scenario import catalogue  # which reads any file, and checks it

        chosen = {name: catalogue.load(name) for name in names}
        abouts = {name: scenario.about.strip() for name, scenario in chosen.items()}
        engines = {n: shipped.engines_of(each.model_dump()) for n, each in chosen.items()}
    else:
        abouts = {name: shipped.about(name) for name in shipped.names()}
        engines = {name: shipped.engines(name) for name in abouts}
    if is_json:
        rows = [{"name": n, "about": about, "engines": engines[n]} for n, about in abouts.items()]
        print(json.dumps(rows))
        return
    if names:
        for name, about in abouts.items():
            text = textwrap.fill(about, 98, break_on_hyphens=False)
            print(f"{name}\n{textwrap.indent(text, '  ')}")
            print(f"\n  closlab run {name}{' --engine sim' * ('sim' in engines[name])}\n")
        return
    width = max(map(len, abouts))
    for name, about in abouts.items():
        alone = "" if "sim" in engines[name] else " On Mininet only."
        print(f"{name:{width}} {about.partition('. ')[0].rstrip('.')}.{alone}")
    print("\ncloslab list NAME tells what to watch, and what to compare with.")
