// A stack of unions indexed at run time: read, written, asked, cleared, and passed on.
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

struct metadata {
    bit<2> at;
}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(pkt.lookahead<bit<8>>()) {
            1: one;
            2: two;
            0xF0 &&& 0xF0: last;
            default: accept;
        }
    }
    state last {
        meta.at = pkt.lookahead<bit<8>>()[1:0];
        transition accept;
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

bit<8> kind_of(in u_t u) {
    return u.a.isValid() ? u.a.kind : u.b.kind;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.u[meta.at].a.isValid()) {
            hdr.u[meta.at].a.x = hdr.u[meta.at].a.x + 1;
        } else if (kind_of(hdr.u[meta.at]) == 2) {
            bit<2> next = meta.at + 1;
            hdr.u[meta.at].b.x[7:0] = 0xEE;
            hdr.u[next].a.setValid();
            hdr.u[next].a = { 9, kind_of(hdr.u[meta.at]) };
        }
        switch (hdr.u[meta.at].a.x) {
            8: { hdr.u[meta.at].a.setInvalid(); }
        }
    }
}

#include "../include/main.p4"
