// Tuples hold values without names.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        tuple<bit<8>, bit<16>> x = { hdr.data.e, hdr.data.c };
        hdr.data.d = x[0];
        hdr.data.a = (bit<32>)x[1];
    }
}

#include "../include/main.p4"
