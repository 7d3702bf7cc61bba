// Parking: how a queue stands still on a switch whose queues cannot. Compiled in with PARKING.
//
// A traffic manager that obeys `queue_gate` (switch/rt/traffic_manager.c) needs none of this. BMv2's cannot hold
// what is queued, so here every lossless packet is asked once more when it comes out of its queue.
// If the queue is paused by then, or if it is not the packet's turn, it is parked: it goes back to
// ingress and from there to a hold port, a port number without an interface, whose queues are
// paced, and from there to ingress again, round and round, until its queue is open and it is the
// next to enter.
//
//                      the next, and the queue is open
//     arrives ──► ingress ───────────────────────────► queue ──► egress ──► leaves
//                  ▲  │ else                                       │ paused, or not its turn
//                  │  └───────► hold queue ──► egress              │
//                  └──────────────────────────────┴────────────────┘
//
// Turns are by ticket, one series for every queue, so that packets leave in the order in which they
// came: three counters say which ticket is the next to be given out, to enter and to leave. A
// packet that comes out of the queue and has to be parked takes "the next to enter" back to itself.
// Since the queue's end is looked at and not its beginning, a pause acts at once however long the
// queue is, and nothing goes round while no queue is paused.
//
// A packet whose turn is far off is asked seldom. A hold port has a queue for every power of two of
// packets before one, all paced at the link's own rate: while k packets leave, every packet that
// has k to 2k before it comes round once, so none is late, and the link is as busy after a pause as
// it was before, up to 256 parked packets; with more, the farthest come round too late. (One hold
// queue for all has to be paced at several times the link's rate, because the next packet may be
// anywhere in it, and still leaves the link idle for a while.)
//
// Reads:  queue_gate, meta.out_port, meta.priority, meta.claim, meta.asked, the clock.
// Writes: meta.parked, meta.ticket, meta.arrived, standard_metadata, the registers below.
// Stops:  the pace is set from outside (set_queue_rate). A packet that the switch itself loses
//         while it is parked would hold up its queue for good: BMv2 has room for 1024 that have
//         come out of hold queues and wait for ingress.

#ifndef PARKING_P4
#define PARKING_P4

#include "headers.p4"
#include "sizes.p4"
#include "pause.p4"

#define HOLD_PORT(port) ((port) | 256)
#define HOLD_QUEUE(before) \
    ((before) < 2 ? 3w7 : ((before) < 4 ? 3w6 : ((before) < 8 ? 3w5 : ((before) < 16 ? 3w4 : \
     ((before) < 32 ? 3w3 : ((before) < 64 ? 3w2 : ((before) < 128 ? 3w1 : 3w0)))))))

register<bit<32>>(QUEUES) parking_issued;     // by egress queue: the next ticket to be given out,
register<bit<32>>(QUEUES) parking_entered;    // the next to enter the queue,
register<bit<32>>(QUEUES) parking_served;     // and the next to leave

// End of ingress of a lossless packet, and all of ingress of a parked one.
control park(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> before;    // packets that have to enter first
    bool    enters;

    action draw() {
        bit<32> queue = QUEUE_INDEX(meta.out_port, meta.priority);
        bit<32> issued;
        bit<32> entered;
        tick_t held_until;
        parking_issued.read(issued, queue);
        parking_entered.read(entered, queue);
        queue_gate.read(held_until, queue);
        meta.ticket = issued;
        meta.arrived = standard_metadata.ingress_global_timestamp;
        before = issued - entered;
        enters = before == 0 && meta.arrived >= held_until;
        parking_issued.write(queue, issued + 1);
        parking_entered.write(queue, enters ? entered + 1 : entered);
    }

    action ask_again() {
        bit<32> queue = QUEUE_INDEX(meta.out_port, meta.priority);
        bit<32> entered;
        tick_t held_until;
        parking_entered.read(entered, queue);
        queue_gate.read(held_until, queue);
        before = meta.ticket - entered;
        enters = before == 0 && meta.asked >= held_until;
        parking_entered.write(queue, enters ? entered + 1 : entered);
        // Recirculation has lost these.
        standard_metadata.ingress_port = meta.claim.in_port;
        standard_metadata.ingress_global_timestamp = meta.arrived;
    }

    apply {
        if (meta.parked) {
            ask_again();
        } else {
            draw();
        }
        meta.parked = !enters;
        standard_metadata.priority = enters ? meta.priority : HOLD_QUEUE(before);
        standard_metadata.egress_spec = enters ? meta.out_port : HOLD_PORT(meta.out_port);
    }
}

// Egress of a lossless packet at its real port: may it leave?
control unpark(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action ask() {
        bit<32> queue = QUEUE_INDEX(meta.out_port, meta.priority);
        bit<32> entered;
        bit<32> served;
        tick_t held_until;
        parking_entered.read(entered, queue);
        parking_served.read(served, queue);
        queue_gate.read(held_until, queue);
        bool leaves = meta.ticket == served &&
            standard_metadata.egress_global_timestamp >= held_until;
        bool is_first = meta.ticket - served < entered - served;    // of those to enter again
        parking_served.write(queue, leaves ? served + 1 : served);
        parking_entered.write(queue, !leaves && is_first ? meta.ticket : entered);
        meta.parked = !leaves;
    }

    apply {
        ask();
    }
}

#endif
