// The compound assignment '/='.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a /= 3;
    }
}

#include "../include/main.p4"
