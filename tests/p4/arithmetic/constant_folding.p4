// Integers of arbitrary precision are worked out at compile time.
#include "../include/data.p4"

const int K = 1000;

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = (1 << 40) / (1 << 30) + 7 % 4;
        hdr.data.b = K * K - 1;
        hdr.data.c = (bit<16>)(K == 1000 ? 5 : 6);
    }
}

#include "../include/main.p4"
