// Schedule: in which order queues are served, and how fast.
//
// v1model has no word for that, so nothing happens here: the entries of these tables are orders to
// the traffic manager (switch/rt/traffic_manager.c), which obeys the tables annotated so and looks at their
// entries, not at packets; our switch does not even look them up. Without an entry a queue is
// served strictly, 7 before 6 before 5, and as fast as the link allows.
//
//     serve   quantum: 0 is strict; those that have one share what the strict ones leave by deficit
//             round robin, and a quantum is how many bytes a turn is worth.
//             rate, burst: a token bucket, in bits a second (0: none) and bytes; a burst of 0 is
//             even spacing.
//     shape   the same for a whole port, but for the queues that are not in `classes`: pause
//             frames must not wait.
//
// All of these count bytes as the link does: preamble, FCS and gap included.
//
// Reads:  the egress port, meta.priority: what its tables order is the switch's to do.
// Writes: nothing.
// Stops:  BMv2 knows strict priority alone and ignores these tables.

#ifndef SCHEDULE_P4
#define SCHEDULE_P4

#include "headers.p4"
#include "sizes.p4"

control schedule(in metadata_t meta, in standard_metadata_t standard_metadata) {
    action serve(bit<32> quantum, bit<64> rate, bit<32> burst) { }

    action shape(bit<64> rate, bit<32> burst, bit<8> classes) { }

    @queue_schedule
    table queue_schedules {
        key = {
            standard_metadata.egress_port : exact;
            meta.priority                 : exact;
        }
        actions = { serve; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    @port_shaper
    table port_shapers {
        key = { standard_metadata.egress_port : exact; }
        actions = { shape; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        queue_schedules.apply();
        port_shapers.apply();
    }
}

#endif
