"""``closlab explain [KEY]``: what a scenario may say, from the models that check it.

Without a key: the sections. With a section, or one of its kinds (``traffic.incast``): its keys.
With a key, or the end of one: what it takes, what holds without it, and what it means.
With a word of the field (``XOFF``): that, and where to see it.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence

from lab.errors import ScenarioError
from lab.scenario import glossary, model
from lab.scenario.keys import Key, nearest, nearest_key

_WIDTH = 100
_INDENT = "  "


def explain(asked: str | None) -> str:
    """The text for a key; without one, for all sections."""
    keys = model.all_keys()
    if asked is None:
        return _overview(keys)
    section, _, kind = asked.partition(".")
    is_kind = kind in model.SECTION_KINDS.get(section, {})
    name = _without_numbers(asked)
    found = [key for key in keys if key.name == name]
    if not found and not is_kind:  # the end of one or several
        found = [key for key in keys if key.name.endswith(f".{name}")]
    word = glossary.found(asked)
    if not found and not is_kind and word is None and kind:
        word = glossary.found(asked.rpartition(".")[2])
        if word is not None:
            head = f"A scenario has no key {asked}. The field has the word:"
            return f"{head}\n\n{glossary.entry_text(word)}"
    if not found and not is_kind and word is None:
        names = dict.fromkeys(key.name for key in keys)
        kinds = (f"{s}.{k}" for s, members in model.SECTION_KINDS.items() for k in members)
        ends = (key.rpartition(".")[2] for key in names)
        words = (name.lower() for word in glossary.WORDS for name in word.name.split(", "))
        hint = nearest(asked.lower(), [*kinds, *names, *ends, *words]) if "." not in asked else ""
        raise ScenarioError(
            f"a scenario has no key '{asked}'" + (hint or nearest_key(asked, [*names, *kinds])),
            "closlab explain, without a key, lists the sections.",
        )
    parts = [glossary.entry_text(word)] if word else []
    parts += [_kind(section, kind, keys)] if is_kind else []
    return "\n\n".join([*parts, *(_one(key, keys) for key in found)])


def _without_numbers(asked: str) -> str:
    """``faults.0.link`` and ``faults.link`` as the key they stand for: ``faults[].link``."""
    name = ""
    lists = {key.name.rpartition("[]")[0] for key in model.all_keys() if "[]" in key.name}
    for part in asked.replace("[]", "").split("."):
        if not part.isdigit():
            name += f"[].{part}" if name in lists else f".{part}" if name else part
    return name


def _overview(keys: Sequence[Key]) -> str:
    top = [key for key in keys if "." not in key.name]
    return "\n".join(
        [
            "A scenario is a YAML file of these keys; only its name must be given.",
            "",
            *_table((key.name, key.about) for key in top),
            "",
            "closlab explain KEY tells more of one, such as pfc, pfc.enabled or traffic.incast.",
        ]
    )


def _kind(section: str, kind: str, keys: Sequence[Key]) -> str:
    inside = [key for key in keys if key.name.startswith(f"{section}.") and key.kind == kind]
    return "\n".join([f"{section}.kind: {kind}", *_said(_doc(section, kind)), "", *_listed(inside)])


def _one(key: Key, keys: Sequence[Key]) -> str:
    """A key, or a section with what is in it."""
    title = f"{key.name}  (kind {key.kind})" if key.kind else key.name
    lines = [title, *_said(key.about)]
    if key.name in model.SECTION_KINDS:
        kinds = ((kind, _doc(key.name, kind)) for kind in model.SECTION_KINDS[key.name])
        lines += ["", f"{_INDENT}Its kinds, of which {key.name}.kind names one:", *_table(kinds)]
        lines += ["", f"{_INDENT}closlab explain {key.name}.KIND lists the keys of one."]
    elif key.is_section:
        inside = [
            other
            for other in keys
            if other.kind == key.kind and other.name.startswith((f"{key.name}.", f"{key.name}[]"))
        ]
        lines += ["", *_listed(inside)]
    else:
        lines += _said(_takes(key))
    return "\n".join(lines)


def _listed(keys: Sequence[Key]) -> list[str]:
    """Keys with all that is known of each."""
    lines = []
    for key in keys:
        lines.append(f"{_INDENT}{key.name}")
        lines += [_INDENT + line for line in (*_said(key.about), *_said(_takes(key)))]
    return lines


def _takes(key: Key) -> str:
    if key.default is None:
        return f"{key.takes}; it must be given"
    return f"{key.takes}; " + (f"{key.default} if not given" if key.default else "may be left out")


def _doc(section: str, kind: str) -> str:
    return inspect.cleandoc(model.SECTION_KINDS[section][kind].__doc__ or "").partition("\n\n")[0]


def _said(text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH - 2 * len(_INDENT), break_on_hyphens=False)
    return [_INDENT + line for line in lines]


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Names and what they mean, side by side."""
    pairs = list(rows)
    width = max(len(name) for name, _ in pairs) + 2
    lines = []
    for name, text in pairs:
        wrapped = textwrap.wrap(text, _WIDTH - width - len(_INDENT)) or [""]
        lines.append(f"{_INDENT}{name:{width}}{wrapped[0]}")
        lines += [" " * (len(_INDENT) + width) + line for line in wrapped[1:]]
    return lines
