// Concatenation of slices and literals.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = hdr.data.c[7:0] ++ 8w0xAB ++ hdr.data.d ++ hdr.data.e;
    }
}

#include "../include/main.p4"
