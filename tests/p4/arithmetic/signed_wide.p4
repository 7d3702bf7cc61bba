// Signed numbers of 128 bits.
#include "../include/before.p4"

header wide_t {
    int<128> a;
    int<128> b;
    bit<8> result;
}

struct headers_t {
    wide_t wide;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.wide);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.wide.result = 0;
        if (hdr.wide.a < hdr.wide.b) {
            hdr.wide.result = 1;
        }
        if (hdr.wide.a < 0) {
            hdr.wide.result = hdr.wide.result | 2;
        }
        int<128> a = hdr.wide.a;
        hdr.wide.a = a >> 100;
        hdr.wide.b = a - hdr.wide.b;
    }
}

#include "../include/after.p4"
