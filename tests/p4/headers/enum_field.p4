// A serializable enum as a field.
#include <v1model.p4>

enum bit<8> Kind {
    ping = 1,
    pong = 2
}

header h_t {
    Kind   kind;
    bit<8> n;
}

struct headers {
    h_t h;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.kind) {
            Kind.ping: accept;
            Kind.pong: accept;
            default: other;
        }
    }
    state other {
        hdr.h.n = 0xEE;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.h.kind == Kind.ping) {
            hdr.h.kind = Kind.pong;
        }
    }
}

#include "../include/main.p4"
