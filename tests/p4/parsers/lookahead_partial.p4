// A look ahead at less than is wanted, then more.
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
        bit<4> high = pkt.lookahead<bit<4>>();
        pkt.extract(hdr.h);
        hdr.h.y = (bit<8>)high;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
