"""What results are made of: frozen parts."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a result."""

    model_config = ConfigDict(frozen=True, defer_build=True)
