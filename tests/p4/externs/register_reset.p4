// A register reset from outside.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;

    apply {
        std.egress_spec = 2;
        bit<32> n;
        r.read(n, 5);
        hdr.data.a = n;
    }
}

#include "../include/main.p4"
