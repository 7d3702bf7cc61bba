// A clone from egress to egress carries the packet as egress leaves it.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 0) {
            clone(CloneType.E2E, 6);
            hdr.data.d = 9;
        } else {
            hdr.data.e = (bit<8>)std.instance_type;
        }
    }
}

#include "../include/main.p4"
