"""Records by descent: what has fields and little else says so by its base."""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Data:
    """Makes every class below it a dataclass: frozen, and equal by value, unless it says not."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(
        cls, *, frozen: bool = True, eq: bool = True, order: bool = False, repr: bool = True
    ) -> None:
        super().__init_subclass__()
        dataclass(frozen=frozen, eq=eq, order=order, repr=repr)(cls)
