// Lose: packets lost on purpose, as a bad cable loses them, by link and priority.
//
// A switch loses what it receives by a port and what it sends by a port, so either direction of
// any cable can be bad, also of one to a host. Pause frames are never lost.
//
// Reads:  the port, meta.priority.
// Writes: meta.drop_reason.

#ifndef LOSE_P4
#define LOSE_P4

#include "headers.p4"
#include "sizes.p4"

control lose_received(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action lose(chance_t chance) {
        chance_t draw;
        random(draw, 0, 0xFFFFFFFE);
        meta.drop_reason = draw < chance ? drop_reason_t.INJECTED_LOSS : meta.drop_reason;
    }

    table receive_losses {
        key = {
            standard_metadata.ingress_port : exact;
            meta.priority                  : exact;
        }
        actions = { lose; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    apply {
        receive_losses.apply();
    }
}

control lose_sent(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    action lose(chance_t chance) {
        chance_t draw;
        random(draw, 0, 0xFFFFFFFE);
        meta.drop_reason = draw < chance ? drop_reason_t.INJECTED_LOSS : meta.drop_reason;
    }

    table send_losses {
        key = {
            standard_metadata.egress_port : exact;
            meta.priority                 : exact;
        }
        actions = { lose; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    apply {
        send_losses.apply();
    }
}

#endif
