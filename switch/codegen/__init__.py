"""BMv2 JSON to readable C."""

from .program import digest_widths, generate

__all__ = ["digest_widths", "generate"]
