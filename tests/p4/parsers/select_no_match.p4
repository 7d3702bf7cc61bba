// Without a matching case the parser stops with NoMatch.
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
            5: accept;
        }
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.NoMatch) {
            hdr.h.y = 0xEE;
        }
    }
}

#include "../include/main.p4"
