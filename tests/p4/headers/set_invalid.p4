// A header made invalid is not sent.
#include <v1model.p4>

header h_t {
    bit<8> x;
    bit<8> y;
}

struct headers {
    h_t one;
    h_t two;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.one);
        transition select(hdr.one.x) {
            0xFF: parse_two;
            default: accept;
        }
    }
    state parse_two {
        pkt.extract(hdr.two);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.two.setInvalid();
    }
}

#include "../include/main.p4"
