// A generic struct.
#include "../include/data.p4"

struct pair_t<T, U> {
    T first;
    U second;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        pair_t<bit<8>, bit<16>> p = { hdr.data.d, hdr.data.c };
        hdr.data.e = p.first;
        hdr.data.a = (bit<32>)p.second;
    }
}

#include "../include/main.p4"
