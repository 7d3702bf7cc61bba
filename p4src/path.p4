// Path choice: which of a group's equally good ways this packet takes.
//
//     ecmp     by a hash of the 5-tuple, in IPv6 of the flow label too: a flow keeps one path, and is
//              never reordered
//     flowlet  a flow that rested for longer than the gap may move, to a path drawn at random
//     dlb      a flow that rested for longer than the gap moves to the port with the shortest queue,
//              and of those that have none to the link that was least busy lately (load.p4)
//     conga    a flow that rested for longer than the gap moves to the path that is least busy all
//              the way to the far leaf (conga.p4)
//     spray    every packet for itself, drawn at random: the load is even, the order is lost
//     adaptive every packet for itself, to the port with the shortest queue, in steps of a quantum;
//              of equals one is drawn
//     structured  every packet goes where its sender says, by bits of its UDP source port: each value
//              of them is a way of its own, hop by hop (MRC's structured entropy values)
//     drill    every packet for itself, to the port with the shorter queue of two that are drawn
//              and the one that won last time (DRILL, SIGCOMM 2017, with d = 2 and m = 1)
//
// A table chooses the policy by priority, at any time. A port that is down is never chosen: what
// it would have carried is spread over the living ones of its group.
//
// A group has ways, which are its ports, each once; and slots, which are what is drawn. The first
// slots are the ways, in order; a way with a larger share of the rate has further slots behind
// them. What is known of a way (how busy it is, who remembers it) is filed under its number among
// the ways, so that its weight may change and nothing else does.
//
// Each tier multiplies the hash by a number of its own before it draws. If a tier drew as the tier
// before it did, it would find all it is given on one of its paths.
//
// Reads:  meta.group, meta.priority, meta.far_leaf, meta.src_port, the clock; buffer_out_used,
//         conga_to, conga_to_time, link_*, port_down.
// Writes: the registers below, meta.out_port, meta.member, or meta.drop_reason.

#ifndef PATH_P4
#define PATH_P4

#include "headers.p4"
#include "sizes.p4"
#include "ports.p4"
#include "buffer.p4"
#include "load.p4"
#include "conga.p4"
#include "flow.p4"

@times register<tick_t>(FLOWLETS)   flowlet_seen;      // when the flow's last packet came
register<member_t>(FLOWLETS) flowlet_member;    // and which way it went
register<member_t>(DRILLS)   drill_best;        // by group and priority: the way that won last

#define DRILL_INDEX(group, priority) ((bit<32>)((bit<13>)(group) ++ (priority)))

enum bit<8> policy_t {
    ECMP = 0, FLOWLET = 1, DLB = 2, CONGA = 3, SPRAY = 4, ADAPTIVE = 5, DRILL = 6, STRUCTURED = 7
}

// Says something of sixteen of a group's ways: X(number, port).
#define EACH_OF_16(X, from) \
    X(from, port0) X(from + 1, port1) X(from + 2, port2) X(from + 3, port3) \
    X(from + 4, port4) X(from + 5, port5) X(from + 6, port6) X(from + 7, port7) \
    X(from + 8, port8) X(from + 9, port9) X(from + 10, port10) X(from + 11, port11) \
    X(from + 12, port12) X(from + 13, port13) X(from + 14, port14) X(from + 15, port15)

control path(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    conga_depart() conga_header;
    flow_hash() hashing;

    policy_t policy = policy_t.ECMP;
    tick_t   gap = 0;
    leaf_t   own_leaf = 0;
    tick_t   metric_age = 0;
    bit<8>   window_shift = 0;
    tick_t   now = standard_metadata.ingress_global_timestamp;

    bit<8>   shift = 0;
    bool     by_load = false;      // of ways with equal queues the less busy one is better

    member_t slots = 0;
    member_t ways = 0;
    bit<32>  factor = 0;
    port_t port0 = 0;  port_t port1 = 0;  port_t port2 = 0;  port_t port3 = 0;
    port_t port4 = 0;  port_t port5 = 0;  port_t port6 = 0;  port_t port7 = 0;
    port_t port8 = 0;  port_t port9 = 0;  port_t port10 = 0; port_t port11 = 0;
    port_t port12 = 0; port_t port13 = 0; port_t port14 = 0; port_t port15 = 0;

    action use_ecmp() {
        policy = policy_t.ECMP;
    }

    action use_flowlet(tick_t flowlet_gap) {
        policy = policy_t.FLOWLET;
        gap = flowlet_gap;
    }

    // load_window_shift, here and below, is that of load.p4.
    action use_dlb(tick_t flowlet_gap, bit<8> load_window_shift) {
        policy = policy_t.DLB;
        gap = flowlet_gap;
        window_shift = load_window_shift;
        by_load = true;
    }

    // Metrics older than `age` count as idle.
    action use_conga(tick_t flowlet_gap, leaf_t leaf, tick_t age, bit<8> load_window_shift) {
        policy = policy_t.CONGA;
        gap = flowlet_gap;
        own_leaf = leaf;
        metric_age = age;
        window_shift = load_window_shift;
        by_load = true;
    }

    action use_spray() {
        policy = policy_t.SPRAY;
    }

    // Queues count as equal whose bytes differ by less than 2^queue_quantum_shift.
    action use_adaptive(bit<8> queue_quantum_shift) {
        policy = policy_t.ADAPTIVE;
        shift = queue_quantum_shift;
    }

    // The bits that count stand first when the port is shifted so far.
    action use_structured(bit<8> entropy_shift) {
        policy = policy_t.STRUCTURED;
        shift = entropy_shift;
    }

    action use_drill() {
        policy = policy_t.DRILL;
    }

    table path_policies {
        key = { meta.priority : exact; }
        actions = {
            use_ecmp; use_flowlet; use_dlb; use_conga; use_spray; use_adaptive; use_drill;
            use_structured;
        }
        default_action = use_ecmp();
        size = 8;
    }

    // At most 64 ways and 256 slots; `hash_factor` is the tier's, an odd number or 2^16.
    action group(member_t slot_count, member_t way_count, bit<32> hash_factor) {
        slots = slot_count;
        ways = way_count;
        factor = hash_factor;
    }

    action no_group() {
        meta.drop_reason = drop_reason_t.NO_NEXT_HOP;
    }

    table groups {
        key = { meta.group : exact; }
        actions = { group; no_group; }
        default_action = no_group();
        size = GROUPS;
    }

    action way(member_t number, port_t port) {
        meta.member = number;
        meta.out_port = port;
    }

    table group_slots {
        key = {
            meta.group  : exact;
            meta.member : exact;
        }
        actions = { way; NoAction; }
        default_action = NoAction();
        size = SLOTS;
    }

    // The ports of sixteen ways, where they have to be compared; there are no loops here. Those
    // beyond the group's ways mean nothing.
    action ports(port_t p0, port_t p1, port_t p2, port_t p3, port_t p4, port_t p5, port_t p6,
                 port_t p7, port_t p8, port_t p9, port_t p10, port_t p11, port_t p12, port_t p13,
                 port_t p14, port_t p15) {
        port0 = p0;   port1 = p1;   port2 = p2;   port3 = p3;
        port4 = p4;   port5 = p5;   port6 = p6;   port7 = p7;
        port8 = p8;   port9 = p9;   port10 = p10; port11 = p11;
        port12 = p12; port13 = p13; port14 = p14; port15 = p15;
    }

    #define WAYS(name)                              \
        table name {                                \
            key = { meta.group : exact; }           \
            actions = { ports; NoAction; }          \
            default_action = NoAction();            \
            size = GROUPS;                          \
        }

    WAYS(ways_from_0)
    WAYS(ways_from_16)
    WAYS(ways_from_32)
    WAYS(ways_from_48)

    bit<32> flow_number;
    bit<32> flow;          // its place among the remembered ones
    bit<16> draw;          // decides, as a fraction of 65536

    action place_flow() {
        flow = flow_number & (FLOWLETS - 1);
        draw = (bit<16>)((flow_number * factor) >> 16);
    }

    action draw_slot() {
        meta.member = (member_t)(((bit<32>)draw * (bit<32>)slots) >> 16);
    }

    // How busy a link is by now, 0 to 7: what load.p4 saw when the last packet left, less what has
    // been forgotten since.
    #define LOCAL_METRIC(metric, port)                                                        \
        tick_t left_at;                                                                       \
        bit<32> utilisation;                                                                  \
        link_time.read(left_at, (bit<32>)port);                                               \
        link_utilisation.read(utilisation, (bit<32>)port);                                    \
        tick_t left = (48w1 << window_shift) |-| (now - left_at);                             \
        bit<64> busy = ((bit<64>)utilisation * (bit<64>)left) >> window_shift;                \
        metric_t metric = busy >= 0xE000 ? 7 : (metric_t)(busy >> 13);

    // Of the candidates the lightest wins. Of equals it is the first at or after `start`, going
    // round, or else one by the draw: by scores, so that wherever the draw pointed, all have the
    // same chance, and the flows of those that stay candidates stay where they are.
    bit<64>  candidates = 0;       // by way
    bit<64>  lightest = 0;
    member_t start = 0;
    bool     goes_round = false;
    bool     by_queue = false;
    bool     by_path = false;

    // The far end's view counts for `by_path`, queues and the order by draw for the others.
    action weigh(member_t number, port_t port) {
        bit<1> down;
        bytes_t used;
        metric_t remote;
        tick_t heard_at;
        port_down.read(down, (bit<32>)port);
        buffer_out_used.read(used, QUEUE_INDEX(port, meta.priority));
        conga_to.read(remote, PATH_INDEX(meta.far_leaf, number));
        conga_to_time.read(heard_at, PATH_INDEX(meta.far_leaf, number));
        LOCAL_METRIC(local, port)
        bytes_t queued = by_queue ? used >> shift : 0;
        remote = by_path && now - heard_at < metric_age ? remote : 0;
        metric_t busyness = by_load ? (local > remote ? local : remote) : 0;
        member_t order = number >= start ? number - start : number + ways - start;
        member_t score = (draw ^ (number * 0x9E37)) * 0x6E35;
        member_t rank = goes_round ? order : ~score;
        bit<64> weight = 7w0 ++ down ++ queued ++ busyness ++ rank;
        meta.member = weight < lightest ? number : meta.member;
        meta.out_port = weight < lightest ? port : meta.out_port;
        lightest = weight < lightest ? weight : lightest;
    }

    #define WEIGH_WAY(number, port) \
        if (candidates[number:number] == 1) { weigh(number, port); }
    #define WEIGH(table, from)                         \
        if (candidates[from + 15:from] != 0) {         \
            table.apply();                             \
            EACH_OF_16(WEIGH_WAY, from)                \
        }

    apply {
        path_policies.apply();
        if (groups.apply().hit) {
            bit<64> all = 64w0xFFFFFFFFFFFFFFFF >> (bit<8>)(64 - ways);
            bool has_slot = policy != policy_t.ADAPTIVE && policy != policy_t.DRILL;
            hashing.apply(hdr, meta, flow_number);
            place_flow();

            // A slot, and perhaps ways to weigh.
            if (policy == policy_t.ECMP) {
                draw_slot();
            } else if (policy == policy_t.SPRAY) {
                random(draw, 0, 0xFFFF);
                draw_slot();
            } else if (policy == policy_t.STRUCTURED) {
                draw = meta.src_port << shift;
                draw_slot();
            } else if (policy == policy_t.ADAPTIVE) {
                random(draw, 0, 0xFFFF);
                by_queue = true;
                candidates = all;
            } else if (policy == policy_t.DRILL) {
                bit<16> other;
                member_t kept;
                random(draw, 0, 0xFFFF);
                random(other, 0, 0xFFFF);
                drill_best.read(kept, DRILL_INDEX(meta.group, meta.priority));
                member_t first = (member_t)(((bit<32>)draw * (bit<32>)ways) >> 16);
                member_t second = (member_t)(((bit<32>)other * (bit<32>)(ways - 1)) >> 16);
                second = second < first ? second : second + 1;
                candidates = (64w1 << (bit<8>)first) | (64w1 << (bit<8>)second) |
                             (64w1 << (bit<8>)kept);
                candidates = candidates & all;
                by_queue = true;
                random(draw, 0, 0xFFFF);
            } else {
                tick_t seen;
                flowlet_seen.read(seen, flow);
                flowlet_member.read(meta.member, flow);
                bool remembered = seen != 0 && meta.member < ways;
                if (!remembered || now - seen > gap) {
                    random(draw, 0, 0xFFFF);
                    // An equally good way is no reason to leave the present one.
                    if (policy == policy_t.FLOWLET || !remembered) {
                        draw_slot();
                    } else {
                        start = meta.member;
                        has_slot = false;
                    }
                    if (policy != policy_t.FLOWLET) {
                        goes_round = true;
                        by_path = policy == policy_t.CONGA;
                        by_queue = !by_path;
                        candidates = all;
                    }
                }
            }

            if (has_slot) {
                bit<1> down = 1;
                if (group_slots.apply().hit) {
                    port_down.read(down, (bit<32>)meta.out_port);
                }
                start = meta.member;
                if (down == 1 && candidates == 0) {
                    by_load = false;
                    candidates = all;
                }
            }
            if (candidates != 0) {
                lightest = 0xFFFFFFFFFFFFFFFF;
                WEIGH(ways_from_0, 0)
                WEIGH(ways_from_16, 16)
                WEIGH(ways_from_32, 32)
                WEIGH(ways_from_48, 48)
            }

            if (policy == policy_t.DRILL) {
                drill_best.write(DRILL_INDEX(meta.group, meta.priority), meta.member);
            } else if (policy == policy_t.FLOWLET || policy == policy_t.DLB ||
                       policy == policy_t.CONGA) {
                flowlet_seen.write(flow, now);
                flowlet_member.write(flow, meta.member);
            }
            if (policy == policy_t.CONGA && meta.far_leaf != 0) {
                conga_header.apply(hdr, meta, own_leaf, metric_age, standard_metadata);
            }
        }
    }
}

#endif
