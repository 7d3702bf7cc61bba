"""The simulator: the same P4 and the same endpoints under a virtual clock, in C."""

from lab.sim.simulation import Account, Simulation, SimulationError

__all__ = ["Account", "Simulation", "SimulationError"]
