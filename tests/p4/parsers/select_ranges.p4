// Cases with ranges: both ends belong to the range, whatever powers of two lie between.
#include "../include/before.p4"

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
        transition select(hdr.data.h1) {
            1 .. 1: one;
            5 .. 1000: many;
            1001 .. 0xffff: more;
            default: accept;
        }
    }
    state one {
        meta.path = 1;
        transition accept;
    }
    state many {
        meta.path = 2;
        transition accept;
    }
    state more {
        meta.path = 3;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b1 = meta.path;
    }
}

#include "../include/after.p4"
