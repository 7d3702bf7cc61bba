// Pause: 802.1Qbb priority flow control, both ways.
//
// Sending.   A lossless packet that had to go into headroom (buffer.p4) asks for a pause frame
//            (XOFF) to where it came from. A timer for every paused ingress queue sends it again
//            when half of what it grants at its own link's speed is over, whether anything moves or
//            not, so that no pause runs out that is still wanted. When the ingress queue has drained
//            below its mark, XON ends it. The frames are clones rewritten on their way out: from
//            ingress for XOFF, from egress for XON; or what a timer made.
// Obeying.   A pause frame received holds the queues (its port, its classes) until a deadline, by
//            writing the register `queue_gate`, which the traffic manager obeys.
// Watchdog.  From the first pause frame on, a queue is looked at from time to time. If it holds
//            packets, none of which has left since the last look, and is told to pause, and if that
//            is still so when `detect` is over, it is stuck: a storm, or a circle of queues. It is then
//            dropped, forwarded or only counted (stuck_t), until no pause frame has come for it for
//            as long as `restore` says, and none that came is still in force: whoever sent that
//            counts on it. A queue that moves is congested, not stuck.
//
// Reads:  the port, the clock, hdr.pfc, hdr.timer, meta.priority, meta.claim, meta.in_used,
//         meta.in_headroom, meta.pool_used, meta.copy_purpose, buffer_*.
// Writes: queue_gate, timers and the registers below; in copies hdr.pfc and the MAC addresses;
//         meta.copy_*, meta.drop_reason, standard_metadata.
// Stops:  holding a queue is the traffic manager's doing (switch/rt/traffic_manager.c).

#ifndef PAUSE_P4
#define PAUSE_P4

#include "headers.p4"
#include "sizes.p4"
#include "buffer.p4"
#include "timers.p4"

@queue_gate
register<tick_t>(QUEUES)  queue_gate;         // by egress queue: until when it stands still
@times register<tick_t>(QUEUES)  pause_until;        // by egress queue: the same, as the last pause frame said
register<tick_t>(QUEUES)  pause_total;        // by egress queue: how long it stood, and will stand
@times register<tick_t>(QUEUES)  pause_heard;        // by egress queue: when the last XOFF came
@times register<tick_t>(QUEUES)  pause_moved;        // by egress queue: when the last packet left
@times register<tick_t>(QUEUES)  pause_stuck_since;  // by egress queue: first look at which none had
register<stuck_t>(QUEUES) pause_stuck;        // by egress queue: what the watchdog made of it

register<bit<1>>(QUEUES)  pause_asked;        // by ingress queue: 1 while its sender is to pause
register<bytes_t>(QUEUES) pause_resume_at;    // by ingress queue: XON when it holds no more

// For readers, who have to take from pause_total what is still to come until queue_gate. The switch
// itself keeps it; on BMv2 it is when the last pause frame came.
@clock
register<tick_t>(1)       clock;

counter(QUEUES, CounterType.packets) xoff_received;    // by port and priority, all of these
counter(QUEUES, CounterType.packets) xon_received;
counter(QUEUES, CounterType.packets) xoff_sent;
counter(QUEUES, CounterType.packets) xon_sent;
counter(QUEUES, CounterType.packets) pause_storms;

// All but class 7, by which pause frames leave: held, they would let others fill what they guard.
#define EACH_CLASS(X) X(0, timer0) X(1, timer1) X(2, timer2) X(3, timer3) \
    X(4, timer4) X(5, timer5) X(6, timer6)

// --- ingress: obey a pause frame ---------------------------------------------------------------

control pause_obey(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<48> quantum;          // 512 bit times, in 1/65536 ticks
    bit<8>  obeyed;
    bit<8>  watched;
    tick_t  watch_every;
    tick_t  now = standard_metadata.ingress_global_timestamp;
    bit<32> queue;

    // Two bitmaps of classes: which are held when told so, and which of them have a watchdog.
    action link(bit<48> pause_quantum, bit<8> classes, bit<8> watched_classes, tick_t every) {
        quantum = pause_quantum;
        obeyed = classes;
        watched = watched_classes;
        watch_every = every;
    }

    table pause_links {
        key = { standard_metadata.ingress_port : exact; }
        actions = { link; }
        default_action = link(0, 0, 0, 0);
        size = PORTS;
    }

    action hold(priority_t priority, bit<16> timer) {
        queue = QUEUE_INDEX(standard_metadata.ingress_port, priority);
        tick_t held_until;
        tick_t total;
        tick_t heard;
        stuck_t stuck;
        queue_gate.read(held_until, queue);
        pause_total.read(total, queue);
        pause_heard.read(heard, queue);
        pause_stuck.read(stuck, queue);
        bool goes_on = stuck == stuck_t.DROP || stuck == stuck_t.FORWARD;
        tick_t said = now + (tick_t)(((bit<64>)timer * (bit<64>)quantum) >> 16);
        tick_t until = goes_on ? held_until : said;
        pause_until.write(queue, said);
        queue_gate.write(queue, until);
        // What was counted before it came to pass is taken back.
        pause_total.write(queue, total - (held_until |-| now) + (until |-| now));
        pause_heard.write(queue, timer == 0 ? heard : now);
        clock.write(0, now);
    }

    // The watchdog's first look, if none is due already.
    action arm() {
        tick_t look_at;
        tick_t since;
        timers.read(look_at, TIMER_WATCH(queue));
        pause_stuck_since.read(since, queue);
        pause_stuck_since.write(queue, look_at == 0 ? 0 : since);
        look_at = look_at == 0 ? now + watch_every : look_at;
        SET_TIMER(TIMER_WATCH(queue), look_at)
    }

    #define OBEY(class, timer)                         \
        if (obeyed[class:class] == 1) {                \
            hold(class, hdr.pfc.timer);                \
            if (hdr.pfc.timer == 0) {                  \
                xon_received.count(queue);             \
            } else {                                   \
                xoff_received.count(queue);            \
                if (watched[class:class] == 1) {       \
                    arm();                             \
                }                                      \
            }                                          \
        }

    apply {
        pause_links.apply();
        obeyed = obeyed & hdr.pfc.classes;
        if (obeyed == 0) {
            meta.drop_reason = drop_reason_t.FOREIGN_PAUSE;
        }
        EACH_CLASS(OBEY)
        mark_to_drop(standard_metadata);
    }
}

// --- ingress: ask for a pause --------------------------------------------------------------------

control pause_request(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<1> asked;

    action ask() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.ingress_port, meta.priority);
        bytes_t resume_at;
        pause_asked.read(asked, queue);
        pause_resume_at.read(resume_at, queue);
        pause_resume_at.write(queue, asked == 0 ? meta.claim.resume_at : resume_at);
        pause_asked.write(queue, 1);
    }

    apply {
        ask();
        if (asked == 0) {
            meta.copy_pause = true;
            if (meta.copy_purpose != copy_t.FLOOD) {    // whose copy sees to it: the port is the same
                meta.copy_purpose = copy_t.PAUSE;
                meta.copy_session = SESSION_OF(standard_metadata.ingress_port);
            }
        }
    }
}

// --- ingress: a timer rang ----------------------------------------------------------------------

control pause_ring(in headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    tick_t  now = standard_metadata.ingress_global_timestamp;
    bit<32> in_queue;
    bit<32> out_queue;
    bit<1>  asked;
    bool    storms;

    // A sender that is still to pause; if nothing is left that could ever resume it, this does.
    action renew() {
        bytes_t in_used;
        bytes_t in_headroom;
        pause_asked.read(asked, in_queue);
        buffer_in_used.read(in_used, in_queue);
        buffer_in_headroom.read(in_headroom, in_queue);
        bool holds = in_used + in_headroom != 0;
        pause_asked.write(in_queue, holds ? asked : 0);
        meta.copy_pause = holds;
    }

    action judge(tick_t every, tick_t detect, tick_t restore, stuck_t remedy) {
        tick_t held_until;
        tick_t said;
        tick_t total;
        tick_t heard;
        tick_t moved;
        tick_t since;
        stuck_t stuck;
        bytes_t waiting;
        queue_gate.read(held_until, out_queue);
        pause_until.read(said, out_queue);
        pause_total.read(total, out_queue);
        pause_heard.read(heard, out_queue);
        pause_moved.read(moved, out_queue);
        pause_stuck_since.read(since, out_queue);
        pause_stuck.read(stuck, out_queue);
        buffer_out_used.read(waiting, out_queue);

        tick_t looked = now |-| every;
        bool told = heard >= looked || now < held_until;
        bool stands = told && waiting != 0 && moved <= looked;
        since = !stands ? 0 : (since == 0 ? now : since);
        storms = stuck == stuck_t.NO && stands && now - since >= detect;
        bool is_over = stuck != stuck_t.NO && now - heard >= restore && now >= said;
        stuck = storms ? remedy : (is_over ? stuck_t.NO : stuck);
        bool lets_go = storms && remedy != stuck_t.ALERT;
        tick_t until = lets_go ? now : held_until;
        tick_t next = told || stuck != stuck_t.NO ? now + every : 0;

        pause_stuck_since.write(out_queue, since);
        pause_stuck.write(out_queue, stuck);
        queue_gate.write(out_queue, until);
        pause_total.write(out_queue, total - (held_until |-| now) + (until |-| now));
        SET_TIMER(TIMER_WATCH(out_queue), next)
    }

    table watchdogs {
        actions = { judge; NoAction; }
        default_action = NoAction();
    }

#ifdef PARKING
    bool renews;
    bool looks;

    // A parked packet has to ask what time it is: nothing else will.
    action look_at_clock() {
        in_queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        out_queue = QUEUE_INDEX(meta.out_port, meta.priority);
        now = meta.asked;
        tick_t renew_at;
        tick_t look_at;
        timers.read(renew_at, TIMER_RENEW(in_queue));
        timers.read(look_at, TIMER_WATCH(out_queue));
        renews = renew_at != 0 && now >= renew_at;
        looks = look_at != 0 && now >= look_at;
        timers.write(TIMER_RENEW(in_queue), renews ? 0 : renew_at);
        timers.write(TIMER_WATCH(out_queue), looks ? 0 : look_at);
    }

    apply {
        look_at_clock();
        if (looks) {
            watchdogs.apply();
            if (storms) {
                pause_storms.count(out_queue);
            }
        }
        if (renews) {
            renew();
            if (asked == 1) {
                meta.copy_purpose = copy_t.PAUSE;
                meta.copy_priority = meta.priority;
                clone_preserving_field_list(CloneType.I2E, SESSION_OF(meta.claim.in_port),
                                            COPY_FIELDS);
            }
        }
    }
#else
    apply {
        mark_to_drop(standard_metadata);
        if (hdr.timer.cell < QUEUES) {
            in_queue = hdr.timer.cell;
            renew();
            if (asked == 1) {
                meta.copy_purpose = copy_t.PAUSE;
                meta.copy_priority = (priority_t)in_queue;
                standard_metadata.egress_spec = (port_t)(in_queue >> 3);
                standard_metadata.priority = PRIORITY_CONTROL;
            }
        } else {
            out_queue = hdr.timer.cell - QUEUES;
            storms = false;
            watchdogs.apply();
            if (storms) {
                pause_storms.count(out_queue);
            }
        }
    }
#endif
}

// --- egress: resume when a packet leaves; drop what is stuck --------------------------------------

control pause_review(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bool resumes;
    stuck_t stuck;
    bytes_t mark = 0;

    action follow() {
        bytes_t free = meta.claim.xon.pool |-| meta.pool_used;
        bit<48> limit = (bit<48>)meta.claim.xon.reserved +
            (((bit<48>)free << meta.claim.xon.alpha) >> 8);
        limit = limit |-| (bit<48>)meta.claim.xon.below;
        bytes_t near = limit > 0xFFFFFFFF ? 0xFFFFFFFF : (bytes_t)limit;
        mark = near > meta.claim.xon.least ? near : meta.claim.xon.least;
    }

    action consider() {
        bit<32> queue = QUEUE_INDEX(meta.claim.in_port, meta.priority);
        bit<1> asked;
        bytes_t resume_at;
        pause_asked.read(asked, queue);
        pause_resume_at.read(resume_at, queue);
        bytes_t until = meta.claim.xon.follows == 1 ? mark : resume_at;
        resumes = asked == 1 && meta.in_headroom == 0 && meta.in_used <= until;
        pause_asked.write(queue, resumes ? 0 : asked);
    }

    action leave() {
        bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, meta.priority);
        pause_moved.write(queue, standard_metadata.egress_global_timestamp);
        pause_stuck.read(stuck, queue);
    }

#ifdef PARKING
    bool renews;

    // Where packets leave they look at the clock; where none does, parked ones do (pause_ring).
    action look_at_clock() {
        bit<32> cell = TIMER_RENEW(QUEUE_INDEX(meta.claim.in_port, meta.priority));
        tick_t renew_at;
        timers.read(renew_at, cell);
        renews = !resumes && renew_at != 0 &&
            standard_metadata.egress_global_timestamp >= renew_at;
        timers.write(cell, renews ? 0 : renew_at);
    }
#endif

    apply {
        if (meta.claim.xon.follows == 1) {
            follow();
        }
        consider();
        meta.copy_pause = false;
#ifdef PARKING
        look_at_clock();
        meta.copy_pause = renews;
        resumes = resumes || renews;
#endif
        if (resumes) {
            meta.copy_purpose = copy_t.PAUSE;
            meta.copy_session = SESSION_OF(meta.claim.in_port);
        }
        leave();
        if (stuck == stuck_t.DROP) {
            meta.drop_reason = drop_reason_t.WATCHDOG;
        }
    }
}

// --- egress: what leaves as a pause frame --------------------------------------------------------

control pause_frame(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<16> quanta;
    tick_t  renew_after;
    mac_t   own_mac;
    bit<32> queue = QUEUE_INDEX(standard_metadata.egress_port, meta.copy_priority);

    action sender(mac_t mac, bit<16> pause_quanta, tick_t renew) {
        own_mac = mac;
        quanta = pause_quanta;
        renew_after = renew;
    }

    table pause_senders {
        key = { standard_metadata.egress_port : exact; }
        actions = { sender; }
        default_action = sender(0, 0xFFFF, 0);
        size = PORTS;
    }

    // Whatever headers follow are cut off.
    action build(bit<8> classes, bit<16> timer) {
        hdr.ethernet.setValid();
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

    action renew_at(tick_t deadline) {
        SET_TIMER(TIMER_RENEW(queue), deadline)
    }

    apply {
        pause_senders.apply();
        if (meta.copy_pause) {
            build(8w1 << meta.copy_priority, quanta);
            renew_at(renew_after == 0 ? 0 : standard_metadata.egress_global_timestamp + renew_after);
            xoff_sent.count(queue);
        } else {
            build(8w1 << meta.copy_priority, 0);
            renew_at(0);
            xon_sent.count(queue);
        }
    }
}

#endif
