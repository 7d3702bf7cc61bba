// A rejected packet goes on to ingress, without an error of its own.
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
            1: reject;
            default: next;
        }
    }
    state next {
        pkt.extract(hdr.more);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (!hdr.more.isValid()) {
            hdr.h.y = 0x99;
        }
    }
}

#include "../include/main.p4"
