// A packet can be dropped in egress too.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.data.a == 1) {
            mark_to_drop(std);
        }
    }
}

#include "../include/main.p4"
