// Comparisons of signed and unsigned numbers at the sign bit, equality of many bits.
#include "../include/before.p4"

header two_t {
    bit<64> a;
    bit<64> b;
    bit<8> result;
}

struct headers_t {
    two_t two;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.two);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> r = 0;
        if (hdr.two.a < hdr.two.b) {
            r = r | 1;
        }
        if ((int<64>)hdr.two.a < (int<64>)hdr.two.b) {
            r = r | 2;
        }
        if (hdr.two.a >= hdr.two.b) {
            r = r | 4;
        }
        if (hdr.two.a == hdr.two.b) {
            r = r | 8;
        }
        if ((int<64>)hdr.two.a > -1) {
            r = r | 16;
        }
        if (hdr.two.a[63:32] != hdr.two.b[63:32]) {
            r = r | 32;
        }
        hdr.two.result = r;
    }
}

#include "../include/after.p4"
