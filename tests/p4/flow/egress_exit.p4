// An exit in egress; the deparser still runs.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.d = 1;
        if (hdr.data.a == 1) {
            exit;
        }
        hdr.data.d = 2;
    }
}

#include "../include/main.p4"
