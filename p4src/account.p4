// Account: packets and bytes by port and direction, and packets dropped by reason and by place.
//
// Reads:  the port, meta.drop_reason, meta.priority, meta.out_port.
// Writes: the counters; standard_metadata, where a packet with a drop reason is marked to drop.

#ifndef ACCOUNT_P4
#define ACCOUNT_P4

#include "headers.p4"
#include "sizes.p4"
#include "buffer.p4"

// Ingress and egress share them.
counter(DROP_REASONS, CounterType.packets) dropped;
counter(QUEUES, CounterType.packets) in_discards;      // by the port they came by, and priority,
counter(QUEUES, CounterType.packets) out_discards;     // or by the queue that they were for or in

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

// In ingress.
control account_dropped(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        dropped.count((bit<32>)(bit<8>)meta.drop_reason);
        if (meta.drop_reason == drop_reason_t.BUFFER_FULL ||
                meta.drop_reason == drop_reason_t.CUT_LOST) {
            out_discards.count(QUEUE_INDEX(meta.out_port, meta.priority));
        } else if (meta.drop_reason != drop_reason_t.IN_SUM) {
            in_discards.count(QUEUE_INDEX(standard_metadata.ingress_port, meta.priority));
        }
        mark_to_drop(standard_metadata);
    }
}

// In egress.
control account_dropped_late(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        dropped.count((bit<32>)(bit<8>)meta.drop_reason);
        out_discards.count(QUEUE_INDEX(standard_metadata.egress_port, meta.priority));
        mark_to_drop(standard_metadata);
    }
}

#endif
