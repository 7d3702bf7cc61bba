// Spraying: every packet takes a way of its own, if its receiver can put them in order again.

#define FLOW { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, \
               hdr.udp.src_port, hdr.udp.dst_port }

const bit<16> ROCE = 4791;    // RoCEv2's UDP port

struct metadata_t {
    bit<16> ways;       // how many there are
    bit<16> way;        // the one that was drawn, counted from 0
    bit<16> draw;       // decides, as a fraction of 65536
}

#include "net.p4"

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_ways(bit<16> ways) {
        meta.ways = ways;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { to_ways; drop; }
        default_action = drop();
        size = 1024;
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    table ways {
        key = { meta.way : exact; }
        actions = { to_port; drop; }
        default_action = drop();
        size = 64;
    }

    apply {
        if (routes.apply().hit) {
            // TODO 1: each packet of RoCE draws a number from 0 to 65535 by chance
            // TODO 2: all others by their flow: who sent them counts on their order
            meta.way = (bit<16>)(((bit<32>)meta.draw * (bit<32>)meta.ways) >> 16);
            ways.apply();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

NET_SWITCH(ingress, egress)
