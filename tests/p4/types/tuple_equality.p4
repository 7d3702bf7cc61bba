// Tuples are equal when all elements are.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        tuple<bit<8>, bit<8>> x = { hdr.data.d, hdr.data.e };
        hdr.data.c = x == { 8w4, 8w5 } ? 16w1 : 16w0;
    }
}

#include "../include/main.p4"
