// Link: what a port's link does beside carrying frames.
//
// As with schedules (schedule.p4), v1model has no word for that: the entries of these tables are
// orders to the switch, which looks at them and not at packets.
//
//     replay    frames are numbered and kept until the other end has them, and sent again if it says
//               that it does not (switch/rt/llr.h). room: bytes that are kept. timeout: how long one
//               goes unanswered. ack_every: bytes that are worth an answer. selective: what comes
//               behind a gap is kept by the receiver, else everything from the gap on is sent again.
//     by_credit a queue sends what it has credits for (credit.p4). least: it stands still with less;
//               the largest frame. cell: memory at the other end is taken in so many bytes.
//               ask_after: how long it waits before it says so.
//
// Reads:  the port, meta.priority: what its tables order is the switch's to do.
// Writes: nothing; `link_counts` is the switch's.
// Stops:  BMv2 ignores all of this.

#ifndef LINK_P4
#define LINK_P4

#include "headers.p4"
#include "sizes.p4"

@link_counts
register<bit<64>>(QUEUES) link_counts;    // eight a port, in the order of llr.h

control link_options(in metadata_t meta, in standard_metadata_t standard_metadata) {
    action replay(bytes_t room, tick_t timeout, bytes_t ack_every, bit<1> selective) { }

    action by_credit(bytes_t credit, bytes_t least, bytes_t cell, tick_t ask_after) { }

    @link_replay
    table link_replays {
        key = { standard_metadata.egress_port : exact; }
        actions = { replay; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    @queue_credits
    table queue_credits {
        key = {
            standard_metadata.egress_port : exact;
            meta.priority                 : exact;
        }
        actions = { by_credit; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    apply {
        link_replays.apply();
        queue_credits.apply();
    }
}

#endif
