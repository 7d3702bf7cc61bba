// Fields that are bool, signed, or odd numbers of bits.
#include <v1model.p4>

header h_t {
    bool   flag;
    bit<3> three;
    int<4> four;
    int<8> eight;
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
        hdr.h.flag = !hdr.h.flag;
        hdr.h.three = hdr.h.three + 1;
        if (hdr.h.four < 0) {
            hdr.h.eight = (int<8>)hdr.h.four;
        }
    }
}

#include "../include/main.p4"
