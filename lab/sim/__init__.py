"""The simulator: the same P4 and the same endpoints under a virtual clock, in C."""

from lab.sim.control import SimulatedSwitches
from lab.sim.simulation import Account, ChannelReport, Simulation, SimulationError

__all__ = [
    "Account",
    "ChannelReport",
    "SimulatedSwitches",
    "Simulation",
    "SimulationError",
]
