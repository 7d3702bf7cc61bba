// Flowlets: a flow that rested for long enough may take another way, and overtakes nothing.

#define FLOW { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, \
               hdr.udp.src_port, hdr.udp.dst_port }

const bit<32> FLOWS = 4096;

struct metadata_t {
    bit<16> ways;       // how many there are
    bit<16> way;        // the one that was drawn, counted from 0
    bit<48> gap;        // how long a flow has to rest
    bit<32> flow;       // its place among those that are remembered
    bit<48> seen;
}

#include "net.p4"

register<bit<48>>(FLOWS) seen_at;     // when the flow's last packet came; 0: never
register<bit<16>>(FLOWS) way_of;      // and which way it went

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_ways(bit<16> ways, bit<48> gap) {
        meta.ways = ways;
        meta.gap = gap;
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
            bit<48> now = standard_metadata.ingress_global_timestamp;
            hash(meta.flow, HashAlgorithm.crc32, 32w0, FLOW, FLOWS);
            seen_at.read(meta.seen, meta.flow);
            way_of.read(meta.way, meta.flow);
            if (meta.seen == 0 || now - meta.seen > meta.gap) {
                bit<16> draw;
                random(draw, 0, 0xFFFF);
                meta.way = (bit<16>)(((bit<32>)draw * (bit<32>)meta.ways) >> 16);
            }
            seen_at.write(meta.flow, now);
            way_of.write(meta.flow, meta.way);
            ways.apply();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

NET_SWITCH(ingress, egress)
