// Signed addition wraps around.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        int<8> x = (int<8>)hdr.data.d;
        int<8> y = (int<8>)hdr.data.e;
        hdr.data.d = (bit<8>)(x + y);
    }
}

#include "../include/main.p4"
