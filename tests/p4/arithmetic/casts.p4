// Casts narrow, widen, and go between numbers, signs, bools and enums.
#include "../include/one_header.p4"

enum bit<8> Kind {
    one = 1,
    two = 2
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.h1 = (bit<16>)hdr.data.w1;
        hdr.data.w2 = (bit<32>)hdr.data.b1;
        hdr.data.h2 = (bit<16>)(int<16>)(int<8>)hdr.data.b1;
        bool low = (bool)hdr.data.b1[0:0];
        hdr.data.b2 = (bit<8>)(bit<1>)(!low);
        Kind kind = (Kind)hdr.data.b3;
        if (kind == Kind.two) {
            hdr.data.b4 = (bit<8>)Kind.one;
        }
    }
}

#include "../include/after.p4"
