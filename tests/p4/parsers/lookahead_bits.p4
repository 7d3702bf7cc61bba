// A look ahead does not move.
#include <v1model.p4>

header h_t {
    bit<8> x;
    bit<8> y;
}

struct headers {
    h_t h;
    h_t more;
}

struct metadata {
    bit<16> ahead;
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        meta.ahead = pkt.lookahead<bit<16>>();
        pkt.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.h.x = meta.ahead[7:0];
        hdr.h.y = meta.ahead[15:8];
    }
}

#include "../include/main.p4"
