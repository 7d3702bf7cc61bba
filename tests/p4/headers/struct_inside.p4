// A struct within a header.
#include <v1model.p4>

struct point_t {
    bit<8> x;
    bit<8> y;
}

header h_t {
    bit<8>  tag;
    point_t p;
}

struct headers {
    h_t h;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        point_t q = hdr.h.p;
        hdr.h.p.x = q.y;
        hdr.h.p.y = q.x;
    }
}

#include "../include/main.p4"
