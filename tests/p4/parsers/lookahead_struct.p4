// A look ahead at a whole struct.
#include <v1model.p4>

header h_t {
    bit<8> x;
    bit<8> y;
}

struct headers {
    h_t h;
    h_t more;
}

struct metadata {}

struct pair_t {
    bit<8> first;
    bit<8> second;
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pair_t p = pkt.lookahead<pair_t>();
        pkt.extract(hdr.h);
        hdr.h.x = p.second;
        hdr.h.y = p.first;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
