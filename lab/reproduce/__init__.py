"""Published results made again: what was published, what the lab comes to, and whether it holds."""

from lab.reproduce.paper import Reproduction, names, read
from lab.reproduce.running import reproduce

__all__ = ["Reproduction", "names", "read", "reproduce"]
