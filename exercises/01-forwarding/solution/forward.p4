// Forwarding and ECMP: a router that spreads flows over equally good ways.

#define FLOW { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, \
               hdr.udp.src_port, hdr.udp.dst_port }

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
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = next_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
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
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            routes.apply();
            if (meta.group != 0) {
                hash(meta.way, HashAlgorithm.crc16, 16w0, FLOW, meta.ways);
                ways.apply();
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

NET_SWITCH(ingress, egress)
