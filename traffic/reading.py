"""Files that people wrote: YAML and XML, read with bounds, and one message for whatever is wrong.

YAML says more than a scenario needs, and PyYAML takes all of it: the same key twice, a list that
holds itself, lists of lists that mean more than memory holds, a number of ten thousand digits.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from files import FileError, read_text, shown

MAX_BYTES = 1_000_000
_MAX_DEPTH = 100
_MAX_NODES = 200_000
_MAX_DIGITS = 100
# What is the same however it is written: 3 and 0x3, yes and true.
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int")}
_DISPUTED = re.compile(r"[\t\ufeff!?]|[|>]#")


class YamlError(FileError):
    """What is no YAML, or YAML that goes too far."""


class NotYamlError(YamlError):
    """What is no YAML at all."""


def read_yaml(path: Path) -> Any:
    """A YAML file's content."""
    text = read_text(path, MAX_BYTES)
    try:
        return parse_yaml(text)
    except NotYamlError as error:
        raise YamlError(f"{shown(path)} is not YAML: {error}") from None
    except YamlError as error:
        raise YamlError(f"{shown(path)}: {error}") from None


def parse_xml(text: str) -> Xml.Element:
    """What a text says in XML."""
    if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
        raise FileError("it defines names of its own, which nothing here needs")
    try:
        return Xml.fromstring(text)  # noqa: S314  (without a DTD there is nothing to expand)
    except (Xml.ParseError, ValueError, RecursionError) as error:
        raise FileError(f"it is not XML: {error}") from None


def parse_yaml(text: str) -> Any:
    """What a text says in YAML.

    libyaml takes it apart, four times as fast as PyYAML's own parser, which tells more of what is
    wrong, and decides where the two disagree.
    """
    try:
        if not _DISPUTED.search(text):
            with suppress(yaml.YAMLError, UnicodeEncodeError):
                return _content(_QuickLoader(text))
        return _content(_Loader(text))
    except yaml.YAMLError as error:
        raise NotYamlError(str(error)) from None
    except SystemError:  # what libyaml makes of no memory
        raise MemoryError from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise NotYamlError(f"a value is not what its tag says: {error}") from None


def _content(loader: _Bounded) -> Any:
    node = loader.get_single_node()
    if node is None:
        return None
    if _size(node, {}) > _MAX_NODES:
        raise YamlError(f"it says more than {_MAX_NODES:,} things, aliases counted as often")
    return loader.construct_document(node)


class _Bounded(Composer, SafeConstructor, Resolver):
    """What makes values of what a parser finds, and refuses what goes too far."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise YamlError(f"it is nested too deeply: {_MAX_DEPTH} levels are allowed")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        first: dict[Hashable, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                names = (
                    {key.value, self.construct_object(key)} if key.tag in _PLAIN else {key.value}
                )
                if twice := [name for name in names if name in first]:
                    raise YamlError(
                        f"'{_shortened(key.value)}' is there twice, in line {first[twice[0]]} "
                        f"and in line {line}: leave one out"
                    )
                first |= dict.fromkeys(names, line)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > _MAX_DIGITS:
            raise YamlError(f"{_shortened(node.value)} is too large a number")
        number: int = super().construct_yaml_int(node)
        return number

    def refuse_bytes(self, node: yaml.Node) -> None:
        line = node.start_mark.line + 1
        raise YamlError(f"what is tagged !!binary in line {line} is no text: write it as text")

    yaml_constructors = SafeConstructor.yaml_constructors | {
        "tag:yaml.org,2002:int": construct_yaml_int,
        "tag:yaml.org,2002:binary": refuse_bytes,
    }


class _Loader(_Bounded, yaml.SafeLoader):
    pass


if yaml.__with_libyaml__:

    class _QuickLoader(_Bounded, yaml.CSafeLoader):
        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)

else:
    _QuickLoader = _Loader  # type: ignore[misc, assignment]


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_DIGITS else f"{text[:20]}..."


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many things a node says, what is shared counted as often as it is named."""
    if id(node) not in known:
        known[id(node)] = _MAX_NODES  # what holds itself says more than any number
        if isinstance(node, yaml.SequenceNode):
            known[id(node)] = 1 + sum(_size(part, known) for part in node.value)
        elif isinstance(node, yaml.MappingNode):
            parts = (_size(key, known) + _size(value, known) for key, value in node.value)
            known[id(node)] = 1 + sum(parts)
        else:
            known[id(node)] = 1
    return known[id(node)]
