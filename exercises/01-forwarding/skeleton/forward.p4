// Forwarding and ECMP: a router that spreads flows over equally good ways.

struct metadata_t {
    bit<16> group;      // a set of equally good ways; 0 is none
    bit<16> ways;       // how many it has
    bit<16> way;        // the one that was drawn, counted from 0
}

#include "net.p4"

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    // What a router does when it knows the port and who is at its other end.
    action to_port(bit<9> port, bit<48> next_mac) {
        // TODO 1: send the packet by `port`
        // TODO 2: it comes from this switch now (whose address it was sent to) and goes to next_mac
        // TODO 3: one hop less to live
    }

    action to_group(bit<16> group, bit<16> ways) {
        meta.group = group;
        meta.ways = ways;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { to_port; to_group; drop; }
        default_action = drop();
        size = 1024;
    }

    table ways {
        key = {
            meta.group : exact;
            meta.way   : exact;
        }
        actions = { to_port; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        // TODO 4: what is not IPv4, or has no hop left to live, ends here
        routes.apply();
        // TODO 5: if the route named a group, draw one of its ways, for each flow the same, and
        //         apply `ways`
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

NET_SWITCH(ingress, egress)
