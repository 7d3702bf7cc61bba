// A stack of unions, its elements parsed by kind.
#include <v1model.p4>

header a_t {
    bit<8> kind;
    bit<8> x;
}

header b_t {
    bit<8>  kind;
    bit<16> x;
}

header_union u_t {
    a_t a;
    b_t b;
}

struct headers {
    u_t[3] u;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(pkt.lookahead<bit<8>>()) {
            1: one;
            2: two;
            default: accept;
        }
    }
    state one {
        pkt.extract(hdr.u.next.a);
        transition start;
    }
    state two {
        pkt.extract(hdr.u.next.b);
        transition start;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.u[0].a.isValid() && hdr.u[1].b.isValid()) {
            hdr.u[1].b.x = 0xBEEF;
        }
    }
}

#include "../include/main.p4"
