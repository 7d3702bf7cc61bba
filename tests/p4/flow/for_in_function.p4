// A loop inside a function, left by return.
#include "../include/data.p4"

bit<8> bits(in bit<16> x) {
    bit<16> rest = x;
    for (bit<8> i = 0; i < 16; i = i + 1) {
        if (rest[0:0] == 1) {
            return i;
        }
        rest = rest >> 1;
    }
    return 16;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = bits(hdr.data.c);
    }
}

#include "../include/main.p4"
