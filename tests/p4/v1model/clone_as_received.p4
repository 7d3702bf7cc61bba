// A clone from ingress to egress carries the packet as it arrived.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        clone(CloneType.I2E, 5);
        hdr.data.d = 1;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 1) {
            hdr.data.e = 0xCC;
        }
    }
}

#include "../include/main.p4"
