"""The control plane: routes from the graph, installed over P4Runtime."""

from controller.client import ControllerError, Counts, Target, install, read_counts
from controller.routes import NextHop, Route, routes_of

__all__ = [
    "ControllerError",
    "Counts",
    "NextHop",
    "Route",
    "Target",
    "install",
    "read_counts",
    "routes_of",
]
