// A cast of a signed number to more bits extends its sign.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = (bit<32>)(int<32>)(int<8>)hdr.data.d;
    }
}

#include "../include/main.p4"
