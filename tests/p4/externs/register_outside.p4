// Ingress and egress share a register declared outside both.
#define OWN_EGRESS
#include "../include/data.p4"

register<bit<32>>(1) shared;

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        shared.write(0, hdr.data.a);
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<32> n;
        shared.read(n, 0);
        hdr.data.b = n;
    }
}

#include "../include/main.p4"
