// Path choice: which of a group's equally good ways this packet takes.
//
//     ecmp     by a hash of the 5-tuple: a flow keeps one path, and is never reordered
//     flowlet  a flow that rested for longer than the gap may move, to a path drawn at random
//     dlb      a flow that rested for longer than the gap moves to the port with the shortest queue,
//              and of those that have none to the link that was least busy lately (load.p4)
//     conga    a flow that rested for longer than the gap moves to the path that is least busy all
//              the way to the far leaf (conga.p4)
//     spray    every packet for itself: the load is even, the order is lost
//
// A table chooses the policy by priority, at any time. A port that is down is never chosen: what
// it would have carried is spread over the living ones of its group.
//
// Tiers draw from different bits of the hash. If a tier used the same ones as the tier before it,
// it would find all it is given on one of its paths.
//
// Reads:  meta.group, meta.priority, the 5-tuple, buffer_out_used, conga_to, link_*, port_down.
// Writes: meta.out_port, meta.member, hdr.conga, or meta.drop_reason.

#ifndef PATH_P4
#define PATH_P4

#include "headers.p4"
#include "sizes.p4"
#include "ports.p4"
#include "buffer.p4"
#include "load.p4"
#include "conga.p4"

register<tick_t>(FLOWLETS)   flowlet_seen;      // when the flow's last packet came
register<member_t>(FLOWLETS) flowlet_member;    // and which way it went

enum bit<8> policy_t { ECMP = 0, FLOWLET = 1, DLB = 2, CONGA = 3, SPRAY = 4 }

// Says something of each of a group's members: X(number, port).
#define EACH_MEMBER(X) \
    X(0, port0) X(1, port1) X(2, port2) X(3, port3) X(4, port4) X(5, port5) X(6, port6) \
    X(7, port7) X(8, port8) X(9, port9) X(10, port10) X(11, port11) X(12, port12) \
    X(13, port13) X(14, port14) X(15, port15)

control path(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    conga_depart() conga_header;

    policy_t policy = policy_t.ECMP;
    tick_t   gap = 0;
    leaf_t   own_leaf = 0;
    tick_t   metric_age = 0;
    bit<8>   window_shift = 0;
    tick_t   now = standard_metadata.ingress_global_timestamp;

    member_t members = 0;
    bit<8>   hash_shift = 0;
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
    }

    // Metrics older than `age` count as idle.
    action use_conga(tick_t flowlet_gap, leaf_t leaf, tick_t age, bit<8> load_window_shift) {
        policy = policy_t.CONGA;
        gap = flowlet_gap;
        own_leaf = leaf;
        metric_age = age;
        window_shift = load_window_shift;
    }

    action use_spray() {
        policy = policy_t.SPRAY;
    }

    table path_policies {
        key = { meta.priority : exact; }
        actions = { use_ecmp; use_flowlet; use_dlb; use_conga; use_spray; }
        default_action = use_ecmp();
        size = 8;
    }

    // A group's ports in order; those from `count` on mean nothing. A port may be named several
    // times, to be given a larger share.
    action ports(member_t count, bit<8> shift, port_t p0, port_t p1, port_t p2, port_t p3,
                 port_t p4, port_t p5, port_t p6, port_t p7, port_t p8, port_t p9, port_t p10,
                 port_t p11, port_t p12, port_t p13, port_t p14, port_t p15) {
        members = count;
        hash_shift = shift;
        port0 = p0;   port1 = p1;   port2 = p2;   port3 = p3;
        port4 = p4;   port5 = p5;   port6 = p6;   port7 = p7;
        port8 = p8;   port9 = p9;   port10 = p10; port11 = p11;
        port12 = p12; port13 = p13; port14 = p14; port15 = p15;
    }

    action no_group() {
        meta.drop_reason = drop_reason_t.NO_NEXT_HOP;
    }

    table groups {
        key = { meta.group : exact; }
        actions = { ports; no_group; }
        default_action = no_group();
        size = GROUPS;
    }

    bit<32> flow_hash;
    bit<32> flow;          // its place among the remembered ones
    bit<16> draw;          // decides, as a fraction of 65536

    action hash_flow() {
        hash(flow_hash, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.src_port,
               meta.dst_port },
             33w0x100000000);
        flow = flow_hash & (FLOWLETS - 1);
        draw = (bit<16>)(flow_hash >> hash_shift);
    }

    action draw_member() {
        meta.member = (member_t)(((bit<32>)draw * (bit<32>)members) >> 16);
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

    // The lightest member wins; of equals the first at or after `start`, going round.
    bit<64>  lightest = 0;
    member_t lightest_member = 0;
    member_t start = 0;

    action weigh_queue(member_t number, port_t port) {
        bit<1> down;
        bytes_t used;
        port_down.read(down, (bit<32>)port);
        buffer_out_used.read(used, QUEUE_INDEX(port, meta.priority));
        LOCAL_METRIC(local, port)
        member_t order = number >= start ? number - start : number + members - start;
        bit<64> weight = 7w0 ++ down ++ used ++ local ++ order;
        lightest_member = weight < lightest ? number : lightest_member;
        lightest = weight < lightest ? weight : lightest;
    }

    action weigh_path(member_t number, port_t port) {
        bit<1> down;
        metric_t remote;
        tick_t heard_at;
        port_down.read(down, (bit<32>)port);
        conga_to.read(remote, PATH_INDEX(meta.far_leaf, number));
        conga_to_time.read(heard_at, PATH_INDEX(meta.far_leaf, number));
        LOCAL_METRIC(local, port)
        remote = now - heard_at < metric_age ? remote : 0;
        metric_t metric = local > remote ? local : remote;
        member_t order = number >= start ? number - start : number + members - start;
        bit<64> weight = 39w0 ++ down ++ metric ++ order;
        lightest_member = weight < lightest ? number : lightest_member;
        lightest = weight < lightest ? weight : lightest;
    }

    // Among the living each member scores by the draw, and the highest score wins: wherever the
    // draw pointed, all have the same chance, and the flows of a living one stay where they are.
    bit<16> best;

    action try_living(member_t number, port_t port) {
        bit<1> down;
        port_down.read(down, (bit<32>)port);
        bit<16> score = (draw ^ (number * 0x9E37)) * 0x6E35 | 1;
        bool better = down == 0 && score > best;
        meta.member = better ? number : meta.member;
        best = better ? score : best;
    }

    #define WEIGH_QUEUE(number, port) if (number < members) { weigh_queue(number, port); }
    #define WEIGH_PATH(number, port) if (number < members) { weigh_path(number, port); }
    #define TRY_LIVING(number, port) if (number < members) { try_living(number, port); }
    #define PICK(number, port) if (meta.member == number) { meta.out_port = port; }

    apply {
        path_policies.apply();
        if (groups.apply().hit) {
            hash_flow();
            if (policy == policy_t.ECMP) {
                draw_member();
            } else if (policy == policy_t.SPRAY) {
                random(draw, 0, 0xFFFF);
                draw_member();
            } else {
                tick_t seen;
                flowlet_seen.read(seen, flow);
                flowlet_member.read(meta.member, flow);
                bool remembered = seen != 0 && meta.member < members;
                if (!remembered || now - seen > gap) {
                    start = meta.member;
                    random(draw, 0, 0xFFFF);
                    if (policy == policy_t.FLOWLET) {
                        draw_member();
                    } else {
                        // An equally good way is no reason to leave the present one.
                        if (!remembered) {
                            draw_member();
                            start = meta.member;
                        }
                        lightest = 0xFFFFFFFFFFFFFFFF;
                        if (policy == policy_t.DLB) {
                            EACH_MEMBER(WEIGH_QUEUE)
                        } else {
                            EACH_MEMBER(WEIGH_PATH)
                        }
                        meta.member = lightest_member;
                    }
                }
            }

            EACH_MEMBER(PICK)
            bit<1> down;
            port_down.read(down, (bit<32>)meta.out_port);
            if (down == 1) {
                best = 0;
                EACH_MEMBER(TRY_LIVING)
                EACH_MEMBER(PICK)
            }

            if (policy != policy_t.ECMP && policy != policy_t.SPRAY) {
                flowlet_seen.write(flow, now);
                flowlet_member.write(flow, meta.member);
            }
            if (policy == policy_t.CONGA && meta.far_leaf != 0) {
                conga_header.apply(hdr, meta, own_leaf, metric_age, members, standard_metadata);
            }
        }
    }
}

#endif
