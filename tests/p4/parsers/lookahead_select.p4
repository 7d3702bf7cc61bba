// A select on what lies ahead.
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
        transition select(pkt.lookahead<bit<8>>()) {
            1: take;
            default: accept;
        }
    }
    state take {
        pkt.extract(hdr.h);
        hdr.h.y = 0x11;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
