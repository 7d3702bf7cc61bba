/* A small program, so that its tree can be read: a function, a loop, an action with a branch. */
#include <v1model.p4>

header byte_t {
    bit<8> n;
}

struct headers_t {
    byte_t byte;
}

struct meta_t {}

bit<8> half(in bit<8> x) {
    return x >> 1;
}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.byte);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action limit(bit<8> most) {
        if (hdr.byte.n > most) {
            hdr.byte.n = most;
        }
    }
    table limits {
        actions = {
            limit;
        }
        default_action = limit(100);
    }
    apply {
        for (bit<8> i in 1 .. 3) {
            hdr.byte.n = half(hdr.byte.n);
        }
        limits.apply();
        std.egress_spec = 1;
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {}
}

control U(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.byte);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;
