"""What moves the packets of an emulated fabric: our own switches, or BMv2.

``soft`` is one process of our own (`switch.host`), ``bmv2`` a simple_switch_grpc for each switch.
"""

from lab.engines.mininet.switches.base import Setting, Switches
from lab.engines.mininet.switches.bmv2 import Bmv2Switches
from lab.engines.mininet.switches.soft import SoftSwitches

KINDS: dict[str, type[Switches]] = {"soft": SoftSwitches, "bmv2": Bmv2Switches}

__all__ = ["KINDS", "Setting", "Switches"]
