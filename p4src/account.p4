// Account: packets and bytes by port and direction, and packets dropped by reason.
//
// Reads:  the port, meta.drop_reason.
// Writes: the counters; standard_metadata, where a packet with a drop reason is marked to drop.

#ifndef ACCOUNT_P4
#define ACCOUNT_P4

#include "headers.p4"
#include "sizes.p4"

counter(DROP_REASONS, CounterType.packets) dropped;    // ingress and egress share it

control account_received(in standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) received;
    apply {
        received.count((bit<32>)standard_metadata.ingress_port);
    }
}

control account_sent(in standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets_and_bytes) sent;
    apply {
        sent.count((bit<32>)standard_metadata.egress_port);
    }
}

control account_dropped(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        dropped.count((bit<32>)(bit<8>)meta.drop_reason);
        mark_to_drop(standard_metadata);
    }
}

#endif
