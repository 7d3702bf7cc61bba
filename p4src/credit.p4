// Credit: flow control by credits (CBFC of Ultra Ethernet's link layer, in kind) instead of pauses.
//
// A class that goes by credits has so many bytes of the buffer to itself at every port, and who sends
// to it knows how many. Both ends count, round and round at 2^32:
//
//     spent    what the sender has sent
//     freed    what has left the receiver's buffer again
//     limit    freed + credit, as the sender last heard of it: it may send while spent < limit
//
// Granting.  When so much has left that it is worth a word, the receiver tells its limit, in a clone
//            of what left, rewritten. A limit is a sum, so a grant that is lost is made up for by the
//            next.
// Asking.    What a bad cable lost, or what ended before it was admitted, is spent and never freed.
//            A sender that has waited for credits for long says how much it has spent; nothing of it
//            is under way by then, so what is not in the buffer is free.
// Obeying.   The traffic manager holds a queue of which limit - spent has no room for the largest
//            frame, counts what it sends, and says when one has waited for long: it reads and writes
//            the registers annotated so, by the orders in `queue_credits`.
//
// Reads:  the port, hdr.credit, hdr.timer, meta.claim, buffer_in_used, link_counts.
// Writes: the registers below; in copies hdr.credit and the MAC addresses; meta.copy_*,
//         meta.priority, standard_metadata.priority, standard_metadata.egress_spec;
//         meta.drop_reason.
// Stops:  holding a queue is the traffic manager's doing (switch/rt/traffic_manager.c). BMv2 cannot.

#ifndef CREDIT_P4
#define CREDIT_P4

#include "headers.p4"
#include "sizes.p4"
#include "buffer.p4"
#include "timers.p4"
#include "link.p4"

const bit<8> CREDIT_GRANT = 1;           // `bytes` is the limit
const bit<8> CREDIT_ASK   = 2;           // `bytes` is what was spent

@queue_limit
register<bytes_t>(QUEUES) credit_limit;     // by egress queue
@queue_spent
register<bytes_t>(QUEUES) credit_spent;     // by egress queue: the traffic manager counts
@queue_waited
register<tick_t>(QUEUES)  credit_waited;    // by egress queue: how long it had none; likewise
@queue_waits
register<bytes_t>(QUEUES) credit_waits;     // by egress queue: how often; likewise
register<bytes_t>(QUEUES) credit_freed;     // by ingress queue
register<bytes_t>(QUEUES) credit_told;      // by ingress queue: of that, what its sender knows

counter(QUEUES, CounterType.packets) credit_grants;      // sent, by port and priority
counter(QUEUES, CounterType.packets) credit_questions;   // sent

// --- ingress: what the other end says ------------------------------------------------------------

control credit_take(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bytes_t credit = 0;
    bool is_right = false;

    // What the other end has for us: nobody can be granted more.
    action far_end(bytes_t far_credit) {
        credit = far_credit;
    }

    table credit_links {
        key = {
            standard_metadata.ingress_port : exact;
            hdr.credit.priority            : exact;
        }
        actions = { far_end; NoAction; }
        default_action = NoAction();
        size = QUEUES;
    }

    action obey() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        bytes_t limit;
        bytes_t spent;
        credit_limit.read(limit, queue);
        credit_spent.read(spent, queue);
        is_right = hdr.credit.bytes - spent <= credit;
        credit_limit.write(queue, is_right ? hdr.credit.bytes : limit);
    }

    action answer() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        bytes_t in_used;
        buffer_in_used.read(in_used, queue);
        bytes_t freed = hdr.credit.bytes - in_used;
        credit_freed.write(queue, freed);
        credit_told.write(queue, freed);
        is_right = true;
    }

    apply {
        meta.priority = (priority_t)hdr.credit.priority;
        bool is_known = credit_links.apply().hit;
        if (is_known && hdr.credit.kind == CREDIT_GRANT && credit != 0) {
            obey();
        } else if (is_known && hdr.credit.kind == CREDIT_ASK) {
            answer();
            meta.copy_purpose = copy_t.CREDIT;
            meta.copy_pause = false;
            meta.copy_session = SESSION_OF(standard_metadata.ingress_port);
        }
        meta.drop_reason = is_right ? drop_reason_t.CREDIT_USED : drop_reason_t.FOREIGN_CREDIT;
    }
}

// --- ingress: the traffic manager says that a queue has waited for long ----------------------------

control credit_ask(in headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> queue = hdr.timer.cell - TIMER_ASK(0);
        meta.copy_purpose = copy_t.CREDIT;
        meta.copy_pause = true;
        meta.copy_priority = (priority_t)queue;
        standard_metadata.egress_spec = (port_t)(queue >> 3);
        standard_metadata.priority = PRIORITY_CONTROL;
    }
}

// --- egress: a packet has left the buffer ---------------------------------------------------------

control credit_review(inout metadata_t meta) {
    action free() {
        bit<32> queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        bytes_t freed;
        bytes_t told;
        credit_freed.read(freed, queue);
        credit_told.read(told, queue);
        freed = freed + meta.claim.size;
        bool is_worth_it = freed - told >= meta.claim.xon.least;
        credit_freed.write(queue, freed);
        credit_told.write(queue, is_worth_it ? freed : told);
        meta.copy_purpose = is_worth_it ? copy_t.CREDIT : copy_t.NONE;
    }

    apply {
        free();
        meta.copy_pause = false;
        meta.copy_session = SESSION_OF(meta.claim.in_port);
    }
}

// --- egress: what leaves as word of credits -------------------------------------------------------

control credit_frame(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    mac_t   own_mac;
    bytes_t credit;
    bytes_t bytes;
    bit<32> waits = 0;
    tick_t  waited = 0;
    bit<64> replayed = 0;
    bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, meta.copy_priority);

    // What we have for the other end.
    action near_end(mac_t mac, bytes_t own_credit) {
        own_mac = mac;
        credit = own_credit;
    }

    table credit_senders {
        key = {
            standard_metadata.egress_port : exact;
            meta.copy_priority            : exact;
        }
        actions = { near_end; }
        default_action = near_end(0, 0);
        size = QUEUES;
    }

    action grant() {
        credit_freed.read(bytes, queue);
        bytes = bytes + credit;
    }

    action ask() {
        credit_spent.read(bytes, queue);
        credit_waits.read(waits, queue);
        credit_waited.read(waited, queue);
        link_counts.read(replayed, QUEUE_INDEX(standard_metadata.egress_port, (priority_t)0));
    }

    action build(bit<8> kind) {
        hdr.ethernet.setValid();
        hdr.ethernet.dst_addr = MAC_CONTROL_ADDR;
        hdr.ethernet.src_addr = own_mac;
        hdr.ethernet.ether_type = ETHERTYPE_MAC_CONTROL;
        hdr.credit.setValid();
        hdr.credit.opcode = OPCODE_EXTENSION;
        hdr.credit.oui = CREDIT_OUI;
        hdr.credit.kind = kind;
        hdr.credit.priority = (bit<8>)meta.copy_priority;
        hdr.credit.bytes = bytes;
        hdr.credit.waits = waits;
        hdr.credit.waited = waited;
        hdr.credit.replayed = replayed;
        hdr.credit.padding = 0;
        truncate(60);
    }

    apply {
        credit_senders.apply();
        if (meta.copy_pause) {
            ask();
            build(CREDIT_ASK);
            credit_questions.count(queue);
        } else {
            grant();
            build(CREDIT_GRANT);
            credit_grants.count(queue);
        }
    }
}

#endif
