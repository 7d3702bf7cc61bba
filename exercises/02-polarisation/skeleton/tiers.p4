// Hash polarisation: switches of several tiers that must not draw alike.

#define FLOW { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, \
               hdr.udp.src_port, hdr.udp.dst_port }

struct metadata_t {
    bit<16> group;      // a set of equally good ways; 0 is none
    bit<16> ways;       // how many it has
    bit<16> way;        // the one that was drawn, counted from 0
    bit<32> factor;     // of this switch's tier: a large odd number, another one in each tier
}

#include "net.p4"

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
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

    action of_tier(bit<32> factor) {
        meta.factor = factor;
    }

    // The controller tells every switch of a tier the same.
    table tier {
        actions = { of_tier; }
        default_action = of_tier(1);
    }

    apply {
        routes.apply();
        if (meta.group != 0) {
            tier.apply();
            // TODO 1: draw a way from 0 to meta.ways - 1, for each flow the same
            // TODO 2: in each tier, by meta.factor, independently of the other tiers
            ways.apply();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

NET_SWITCH(ingress, egress)
