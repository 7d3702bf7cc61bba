// Pause: 802.1Qbb priority flow control, both ways.
//
// Sending.   A lossless packet that had to go into headroom (buffer.p4) asks for a pause frame
//            (XOFF) to where it came from. While the pause is wanted it is sent again before it
//            runs out; when the ingress queue has drained below its mark, XON ends it. Frames are
//            clones rewritten on their way out: from ingress for XOFF, from egress for XON and for
//            XOFF renewed by a departure.
//            Where nothing departs, because our own egress is paused too, the pause frames
//            arriving for that egress keep ours alive: each goes round all ports, and leaves as a
//            pause frame by those that we have paused, so that no pause of ours runs out before
//            the one it depends on. (Relaying only what is nearly due would not do: one that just
//            missed it waits for the next frame, every hop of a chain later than the one before.)
//            In a cycle of paused switches the frames go round for as long as it lasts. A frame
//            that follows another by less than half a link's delay is swallowed, which bounds how
//            many there are; it cannot be all of them, since one goes round in more than that.
// Obeying.   A pause frame received holds the queues (its port, its classes) until a deadline, by
//            writing the register `queue_gate`, which the traffic manager obeys.
// Watchdog.  A queue held without a break for longer than the limit is stuck in a storm: it is let
//            go, and what comes out of it is dropped until the pause frames stop.
//
// Reads:  hdr.pfc, meta.claim, meta.in_used, meta.in_headroom.
// Writes: queue_gate and the registers below, meta.copy_*, meta.drop_reason, standard_metadata.
// Stops:  holding a queue is the traffic manager's doing (switch/rt/tm.c).

#ifndef PAUSE_P4
#define PAUSE_P4

#include "headers.p4"
#include "sizes.p4"
#include "buffer.p4"

@queue_gate
register<tick_t>(QUEUES)  queue_gate;         // by egress queue: until when it stands still
register<tick_t>(QUEUES)  pause_began;        // by egress queue: since when
register<tick_t>(QUEUES)  pause_storm_until;  // by egress queue: until when it counts as stuck
register<tick_t>(QUEUES)  pause_total;        // by egress queue: how long it stood still in all

register<tick_t>(QUEUES)  pause_sent;         // by ingress queue: one tick after XOFF left; 0: none
register<bytes_t>(QUEUES) pause_resume_at;    // by ingress queue: XON when it holds no more
register<bit<32>>(1)      pauses_standing;    // how many ingress queues have paused their sender

counter(QUEUES, CounterType.packets) xoff_received;    // by port and priority, all of these
counter(QUEUES, CounterType.packets) xon_received;
counter(QUEUES, CounterType.packets) xoff_sent;
counter(QUEUES, CounterType.packets) xon_sent;
counter(QUEUES, CounterType.packets) pause_storms;

#define EACH_CLASS(X) X(0, timer0) X(1, timer1) X(2, timer2) X(3, timer3) \
    X(4, timer4) X(5, timer5) X(6, timer6) X(7, timer7)

// --- ingress: obey a pause frame ---------------------------------------------------------------

control pause_obey(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<48> quantum;          // 512 bit times, in 1/65536 ticks
    bit<8>  lossless_classes;
    tick_t  storm_limit;
    tick_t  now = standard_metadata.ingress_global_timestamp;
    bit<32> queue;
    bool    storm_begins;

    action link(bit<48> pause_quantum, bit<8> classes, tick_t storm_after) {
        quantum = pause_quantum;
        lossless_classes = classes;
        storm_limit = storm_after;
    }

    table pause_links {
        key = { standard_metadata.ingress_port : exact; }
        actions = { link; }
        default_action = link(0, 0, 0);
        size = PORTS;
    }

    action hold(priority_t priority, bit<16> timer) {
        queue = QUEUE_INDEX(standard_metadata.ingress_port, priority);
        tick_t held_until;
        tick_t began;
        tick_t storm_until;
        tick_t total;
        queue_gate.read(held_until, queue);
        pause_began.read(began, queue);
        pause_storm_until.read(storm_until, queue);
        pause_total.read(total, queue);

        tick_t lasting = (tick_t)(((bit<64>)timer * (bit<64>)quantum) >> 16);
        bool stormed = now < storm_until;
        bool goes_on = timer != 0 && (now < held_until || stormed);
        began = goes_on ? began : now;
        bool storms = goes_on && storm_limit != 0 && now - began > storm_limit;
        storm_begins = storms && !stormed;
        lasting = timer == 0 ? 0 : lasting;

        pause_began.write(queue, began);
        // Let go now: what waited in vain must not count as having been free to go all along.
        queue_gate.write(queue, storms ? now : now + lasting);
        pause_storm_until.write(queue, storms ? now + lasting : 0);
        // What was counted before it came to pass is taken back.
        pause_total.write(queue, total - (held_until |-| now) + (storms ? 0 : lasting));
    }

    #define OBEY(class, timer)                         \
        if (classes[class:class] == 1) {               \
            hold(class, hdr.pfc.timer);                \
            if (hdr.pfc.timer == 0) {                  \
                xon_received.count(queue);             \
            } else {                                   \
                xoff_received.count(queue);            \
            }                                          \
            if (storm_begins) {                        \
                pause_storms.count(queue);             \
            }                                          \
        }

    apply {
        pause_links.apply();
        bit<8> classes = hdr.pfc.classes & lossless_classes;
        EACH_CLASS(OBEY)
        bit<32> standing;
        pauses_standing.read(standing, 0);
        if (standing != 0) {
            standard_metadata.mcast_grp = GROUP_ALL_PORTS;
            standard_metadata.priority = PRIORITY_CONTROL;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

// --- ingress: ask for a pause --------------------------------------------------------------------

control pause_request(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bool due;

    action consider() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        tick_t now = standard_metadata.ingress_global_timestamp;
        tick_t sent;
        bytes_t resume_at;
        bit<32> standing;
        pause_sent.read(sent, queue);
        pause_resume_at.read(resume_at, queue);
        pauses_standing.read(standing, 0);
        due = sent == 0 || now >= sent + (tick_t)meta.claim.pause_refresh;
        pause_resume_at.write(queue, sent == 0 ? meta.claim.resume_at : resume_at);
        pause_sent.write(queue, due ? now + 1 : sent);
        pauses_standing.write(0, sent == 0 ? standing + 1 : standing);
    }

    apply {
        consider();
        if (due) {
            meta.copy_purpose = copy_t.PAUSE;
            meta.copy_pause = true;
            meta.copy_session = SESSION_OF(standard_metadata.ingress_port);
        }
    }
}

// --- egress: resume, or renew, when a packet leaves; drop what a storm let go --------------------

control pause_review(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    tick_t now = standard_metadata.egress_global_timestamp;
    bool resumes;
    bool renews;
    bool stuck;

    action consider() {
        bit<32> queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        tick_t sent;
        bytes_t resume_at;
        bit<32> standing;
        pause_sent.read(sent, queue);
        pause_resume_at.read(resume_at, queue);
        pauses_standing.read(standing, 0);
        resumes = sent != 0 && meta.in_headroom == 0 && meta.in_used <= resume_at;
        renews = sent != 0 && !resumes && now >= sent + (tick_t)meta.claim.pause_refresh;
        pause_sent.write(queue, resumes ? 0 : (renews ? now + 1 : sent));
        pauses_standing.write(0, resumes ? standing - 1 : standing);
    }

    action look_for_storm() {
        tick_t storm_until;
        pause_storm_until.read(storm_until,
                               QUEUE_INDEX(standard_metadata.egress_port, meta.priority));
        stuck = now < storm_until;
    }

    apply {
        consider();
        if (resumes || renews) {
            meta.copy_purpose = copy_t.PAUSE;
            meta.copy_pause = renews;
            meta.copy_session = SESSION_OF(meta.claim.in_port);
        }
        look_for_storm();
        if (stuck) {
            meta.drop_reason = drop_reason_t.PAUSE_STORM;
        }
    }
}

// --- egress: what leaves as a pause frame --------------------------------------------------------

control pause_frame(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<16> quanta;
    bit<32> fresh;
    mac_t   own_mac;
    bit<8>  due = 0;

    // fresh_for: ticks for which a pause that was just sent is not relayed again.
    action sender(mac_t mac, bit<16> pause_quanta, bit<32> fresh_for) {
        own_mac = mac;
        quanta = pause_quanta;
        fresh = fresh_for;
    }

    table pause_senders {
        key = { standard_metadata.egress_port : exact; }
        actions = { sender; }
        default_action = sender(0, 0xFFFF, 0xFFFFFFFF);
        size = PORTS;
    }

    // Whatever headers follow are cut off.
    action build(bit<8> classes, bit<16> timer) {
        hdr.ethernet.dst_addr = MAC_CONTROL_ADDR;
        hdr.ethernet.src_addr = own_mac;
        hdr.ethernet.ether_type = ETHERTYPE_MAC_CONTROL;
        hdr.pfc.setValid();
        hdr.pfc.opcode = OPCODE_PFC;
        hdr.pfc.reserved = 0;
        hdr.pfc.classes = classes;
        hdr.pfc.timer0 = timer * (bit<16>)classes[0:0];
        hdr.pfc.timer1 = timer * (bit<16>)classes[1:1];
        hdr.pfc.timer2 = timer * (bit<16>)classes[2:2];
        hdr.pfc.timer3 = timer * (bit<16>)classes[3:3];
        hdr.pfc.timer4 = timer * (bit<16>)classes[4:4];
        hdr.pfc.timer5 = timer * (bit<16>)classes[5:5];
        hdr.pfc.timer6 = timer * (bit<16>)classes[6:6];
        hdr.pfc.timer7 = timer * (bit<16>)classes[7:7];
        hdr.pfc.padding = 0;
        truncate(60);
    }

    // Whether to relay the pause of one class through this port; notes that it is sent.
    action renew(priority_t class) {
        bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, class);
        tick_t now = standard_metadata.egress_global_timestamp;
        tick_t sent;
        bytes_t in_used;
        bytes_t in_headroom;
        pause_sent.read(sent, queue);
        buffer_in_used.read(in_used, queue);
        buffer_in_headroom.read(in_headroom, queue);
        // A queue that is empty has nothing left that could ever resume its sender.
        bool is_due = sent != 0 && now >= sent + (tick_t)fresh && in_used + in_headroom != 0;
        pause_sent.write(queue, is_due ? now + 1 : sent);
        due = is_due ? due | (8w1 << class) : due;
    }

    #define RENEW(class, timer) \
        if (hdr.pfc.classes[class:class] == 1 && hdr.pfc.timer != 0) { renew(class); }
    #define COUNT_XOFF(class, timer) \
        if (due[class:class] == 1) { \
            xoff_sent.count(QUEUE_INDEX(standard_metadata.egress_port, 3w##class)); }

    apply {
        pause_senders.apply();
        if (meta.copy_purpose == copy_t.PAUSE) {
            bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, meta.copy_priority);
            if (meta.copy_pause) {
                build(8w1 << meta.copy_priority, quanta);
                xoff_sent.count(queue);
            } else {
                build(8w1 << meta.copy_priority, 0);
                xon_sent.count(queue);
            }
        } else {
            EACH_CLASS(RENEW)
            if (due != 0) {
                build(due, quanta);
                EACH_CLASS(COUNT_XOFF)
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

#endif
