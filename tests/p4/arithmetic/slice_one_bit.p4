// A slice of one bit.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = (bit<8>)hdr.data.c[15:15];
    }
}

#include "../include/main.p4"
