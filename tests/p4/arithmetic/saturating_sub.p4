// Saturating subtraction stops at zero.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = hdr.data.a |-| hdr.data.b;
    }
}

#include "../include/main.p4"
