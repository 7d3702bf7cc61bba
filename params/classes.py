"""Classes of traffic: a packet's priority is its queue, 0 to 7; pause frames leave by 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, GetCoreSchemaHandler, WrapValidator
from pydantic_core import CoreSchema, core_schema

from params.section import Section

PRIORITIES = range(8)
LOSSLESS_PRIORITY = 3
CONTROL_PRIORITY = 6
PAUSE_PRIORITY = 7  # the queue that pause frames leave by, before all others
# RoCE's, and the class selectors of RFC 2474; all others are best effort.
DSCP_PRIORITIES = {8: 1, 16: 2, 26: LOSSLESS_PRIORITY, 32: 4, 40: 5, 48: CONTROL_PRIORITY}
PCP_PRIORITIES = {pcp: min(pcp, CONTROL_PRIORITY) for pcp in PRIORITIES}

Queue = Annotated[int, Field(ge=0, lt=len(PRIORITIES))]
Priority = Annotated[int, Field(ge=0, le=6)]
Dscp = Annotated[int, Field(ge=0, le=63)]
Pcp = Annotated[int, Field(ge=0, le=7)]
_Value = TypeVar("_Value")


def _each_once(values: Any, check: Any) -> Any:
    """Keys that are read as the same number are the same key."""
    made = check(values)
    if isinstance(values, Mapping) and len(made) < len(values):
        raise ValueError("a number is there twice; name each once")
    return made


ONCE = WrapValidator(_each_once)
ByClass = Annotated[dict[Priority, _Value], ONCE]


class ClassSet(Set[int]):
    """Some of the classes, as a bitmap: neither order nor repetition changes what it means."""

    __slots__ = ("mask",)
    written = tuple[Priority, ...]
    """What people write for it."""

    def __init__(self, classes: Iterable[int] = ()) -> None:
        self.mask = 0
        for each in classes:
            if each not in PRIORITIES:
                raise ValueError(f"there is no class {each}; they are 0 to {PRIORITIES[-1]}")
            self.mask |= 1 << each

    def __contains__(self, each: object) -> bool:
        return isinstance(each, int) and each >= 0 and bool(self.mask >> each & 1)

    def __iter__(self) -> Iterator[int]:
        return (each for each in PRIORITIES if self.mask >> each & 1)

    def __len__(self) -> int:
        return self.mask.bit_count()

    __hash__ = Set._hash

    def __repr__(self) -> str:
        return f"ClassSet({[*self]})"

    @classmethod
    def _read(cls, numbers: tuple[int, ...]) -> ClassSet:
        made = cls(numbers)
        if len(made) < len(numbers):
            twice = next(each for each in numbers if numbers.count(each) > 1)
            raise ValueError(f"class {twice} is named twice; name it once")
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: tuple(value) if isinstance(value, ClassSet) else value,
            core_schema.no_info_after_validator_function(
                cls._read, handler.generate_schema(cls.written)
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(list),
        )


class Classes(Section):
    """What tells a packet's priority, which is its queue: 0 is best effort, 6 control."""

    trust: Literal["dscp", "pcp"] = "dscp"
    """Whose word counts: the DSCP's, or, where there is one, that of an 802.1Q tag's PCP."""
    dscp: Annotated[dict[Dscp, Priority], ONCE] = {}
    """Priorities by DSCP, besides 8: 1, 16: 2, 26: 3, 32: 4, 40: 5 and 48: 6; others are 0."""
    pcp: Annotated[dict[Pcp, Priority], ONCE] = {}
    """Priorities by PCP, where it differs from the PCP itself; 7 is 6 otherwise."""

    @property
    def by_dscp(self) -> dict[int, int]:
        """Priorities by DSCP, the usual ones included; what is missing is best effort."""
        return DSCP_PRIORITIES | self.dscp

    @property
    def by_pcp(self) -> dict[int, int]:
        """Priorities by PCP, if tags are believed."""
        return PCP_PRIORITIES | self.pcp if self.trust == "pcp" else {}
