// Stacks are equal when all elements are.
#include <v1model.p4>

header h_t {
    bit<1> more;
    bit<7> n;
}

struct headers {
    h_t[4] s;
    h_t[4] copy;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.s.next);
        transition select(hdr.s.last.more) {
            1: start;
            default: accept;
        }
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.copy = hdr.s;
        if (hdr.s[0].n == 9) {
            hdr.copy[1].n = 0;
        }
        bool same = hdr.copy == hdr.s;
        hdr.copy[0].setInvalid();
        hdr.copy[1].setInvalid();
        hdr.s[0].n = same ? 7w1 : 7w2;
    }
}

#include "../include/main.p4"
