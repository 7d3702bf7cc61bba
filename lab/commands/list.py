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

        abouts = {name: catalogue.load(name).about.strip() for name in names}
    else:
        abouts = {name: shipped.about(name) for name in shipped.names()}
    if is_json:
        print(json.dumps([{"name": name, "about": about} for name, about in abouts.items()]))
        return
    if names:
        for name, about in abouts.items():
            told = textwrap.fill(about, 98, break_on_hyphens=False)
            print(f"{name}\n{textwrap.indent(told, '  ')}")
            print(f"\n  closlab run {name} --engine sim\n")
        return
    width = max(map(len, abouts))
    for name, about in abouts.items():
        print(f"{name:{width}} {about.partition('. ')[0].rstrip('.')}.")
    print("\ncloslab list NAME tells what to watch, and what to compare with.")
