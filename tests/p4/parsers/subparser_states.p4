// A sub-parser with several states, called twice.
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

parser One(packet_in pkt, out h_t h) {
    state start {
        pkt.extract(h);
        transition select(h.x) {
            1: mark;
            default: accept;
        }
    }
    state mark {
        h.y = 0xAA;
        transition accept;
    }
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    One() one;

    state start {
        one.apply(pkt, hdr.h);
        transition select(hdr.h.x) {
            0: accept;
            default: next;
        }
    }
    state next {
        one.apply(pkt, hdr.more);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
