// Ports: which of them are dead.
//
// Stops:  the switch itself keeps this register in step with its ports (switch/rt/sw.c), so that a
//         packet is steered away as soon as the carrier is gone; BMv2 leaves it at zero.

#ifndef PORTS_P4
#define PORTS_P4

#include "sizes.p4"

@port_down
register<bit<1>>(PORTS) port_down;    // 1: no carrier

#endif
