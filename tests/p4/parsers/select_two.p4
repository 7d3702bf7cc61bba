// A select on two values at once.
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

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.x, hdr.h.y) {
            (1, 2): mark;
            (1, _): other;
            (_, 3 &&& 3): mark;
            default: accept;
        }
    }
    state mark {
        hdr.h.y = 0xAA;
        transition accept;
    }
    state other {
        hdr.h.y = 0xBB;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
