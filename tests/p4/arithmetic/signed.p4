// Signed numbers: comparisons, shifts that keep the sign, products, casts that extend.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        int<8> a = (int<8>)hdr.data.b1;
        int<8> b = (int<8>)hdr.data.b2;
        int<32> wide = (int<32>)a;
        hdr.data.w1 = (bit<32>)(wide * (int<32>)b);
        hdr.data.w2 = (bit<32>)(wide >> 2);
        hdr.data.h1 = (bit<16>)(int<16>)(a - b);
        hdr.data.b3 = (bit<8>)(-a);
        if (a < b) {
            hdr.data.b4 = 1;
        } else if (a == b) {
            hdr.data.b4 = 2;
        } else {
            hdr.data.b4 = 3;
        }
        hdr.data.h2 = (bit<16>)(bit<8>)a;
    }
}

#include "../include/after.p4"
