// A loop that counts what it reads.
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
    bit<8> left = 0;

    state start {
        pkt.extract(hdr.h);
        left = hdr.h.x;
        transition check;
    }
    state check {
        transition select(left) {
            0: accept;
            default: skip;
        }
    }
    state skip {
        pkt.advance(8);
        left = left - 1;
        transition check;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
