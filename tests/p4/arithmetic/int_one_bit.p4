// A signed number of one bit is 0 or -1.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        int<1> x = (int<1>)hdr.data.d[0:0];
        hdr.data.c = (bit<16>)(int<16>)x;
    }
}

#include "../include/main.p4"
