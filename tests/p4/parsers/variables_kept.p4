// Variables of the parser keep their values between states.
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
    bit<8> n = 0;

    state start {
        pkt.extract(hdr.h);
        n = hdr.h.x;
        transition next;
    }
    state next {
        pkt.extract(hdr.more);
        n = n + hdr.more.x;
        transition last;
    }
    state last {
        hdr.h.y = n;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
