// A parser called from another.
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

parser Tail(packet_in pkt, out h_t h) {
    state start {
        pkt.extract(h);
        h.y = h.y + 1;
        transition accept;
    }
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Tail() tail;

    state start {
        pkt.extract(hdr.h);
        tail.apply(pkt, hdr.more);
        hdr.h.y = hdr.more.x;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

#include "../include/main.p4"
