// Parking: how a queue stands still on a switch whose queues cannot. Compiled in with PARKING.
//
// A traffic manager that obeys `queue_gate` (switch/rt/tm.c) needs none of this. BMv2's cannot hold
// what is queued, so here a packet for a queue that is paused does not go there. It goes to a hold
// port, a port number without an interface whose queue is paced at a few times the link's rate,
// and from its end back to ingress, round and round, until the queue is open and it is its turn.
// Turns are by ticket, one series for every lossless queue, so that packets stay in order; a packet
// that arrives while others are parked has to park as well. Little is let into the real queue at a
// time, because that is what still leaves after a pause: the far end's headroom must cover it.
//
// Reads:  queue_gate, meta.out_port, meta.priority, meta.claim.
// Writes: meta.parked, meta.ticket, standard_metadata.egress_spec, the registers below.
// Stops:  the pace of the hold ports is set from outside (set_queue_rate).

#ifndef PARKING_P4
#define PARKING_P4

#include "headers.p4"
#include "sizes.p4"
#include "pause.p4"

#define HOLD_PORT(port) ((port) | 256)

register<bit<32>>(QUEUES) parking_issued;    // by egress queue: tickets given out
register<bit<32>>(QUEUES) parking_served;    // by egress queue: tickets whose turn has been
register<bytes_t>(QUEUES) parking_inside;    // by egress queue: bytes in the real queue

// End of ingress of a lossless packet, and all of ingress of a parked one.
control park(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bool passes;

    action look(bit<32> fresh) {
        bit<32> queue = QUEUE_INDEX(meta.out_port, meta.priority);
        bit<32> issued;
        bit<32> served;
        bytes_t inside;
        tick_t held_until;
        parking_issued.read(issued, queue);
        parking_served.read(served, queue);
        parking_inside.read(inside, queue);
        queue_gate.read(held_until, queue);
        meta.ticket = fresh == 1 ? issued : meta.ticket;
        passes = meta.ticket == served && inside < PARKING_QUEUE_BYTES &&
            standard_metadata.ingress_global_timestamp >= held_until;
        parking_issued.write(queue, issued + fresh);
        parking_served.write(queue, passes ? served + 1 : served);
        parking_inside.write(queue, passes ? inside + meta.claim.size : inside);
    }

    apply {
        if (meta.parked) {
            look(0);
        } else {
            look(1);
        }
        meta.parked = !passes;
        standard_metadata.priority = meta.priority;
        standard_metadata.egress_spec = passes ? meta.out_port : HOLD_PORT(meta.out_port);
    }
}

// Egress of a lossless packet at its real port.
control unpark(in metadata_t meta, in standard_metadata_t standard_metadata) {
    action leave() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, meta.priority);
        bytes_t inside;
        parking_inside.read(inside, queue);
        parking_inside.write(queue, inside - meta.claim.size);
    }

    apply {
        leave();
    }
}

#endif
