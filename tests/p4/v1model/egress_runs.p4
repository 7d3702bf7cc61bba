// Egress runs after ingress and sees its metadata.
#define OWN_EGRESS
#define OWN_METADATA
struct metadata {
    bit<8> mark;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.mark = hdr.data.e;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.d = meta.mark + 1;
    }
}

#include "../include/main.p4"
