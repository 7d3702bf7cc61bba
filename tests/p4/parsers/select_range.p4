// A select with a range.
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
        transition select(hdr.h.x) {
            3 .. 9: mark;
            200 .. 255: other;
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
