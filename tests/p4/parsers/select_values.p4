// select on one value: exact cases, constants, default.
#include "../include/before.p4"

const bit<8> THREE = 3;

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> path;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.b1) {
            1: one;
            0x2: two;
            THREE: three;
            default: other;
        }
    }
    state one {
        meta.path = 0x11;
        transition accept;
    }
    state two {
        meta.path = 0x22;
        transition accept;
    }
    state three {
        meta.path = 0x33;
        transition accept;
    }
    state other {
        meta.path = 0xff;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b2 = meta.path;
    }
}

#include "../include/after.p4"
