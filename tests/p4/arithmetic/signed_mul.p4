// Signed multiplication.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        int<16> x = (int<16>)(int<8>)hdr.data.d;
        int<16> y = (int<16>)(int<8>)hdr.data.e;
        hdr.data.c = (bit<16>)(x * y);
    }
}

#include "../include/main.p4"
