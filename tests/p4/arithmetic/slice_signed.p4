// A slice of a signed number is unsigned.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        int<32> x = (int<32>)hdr.data.a;
        hdr.data.d = x[31:24];
    }
}

#include "../include/main.p4"
