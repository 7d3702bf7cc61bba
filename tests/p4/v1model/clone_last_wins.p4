// Of several clone calls the last one counts.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        clone(CloneType.I2E, 5);
        clone(CloneType.I2E, 7);
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {

    }
}

#include "../include/main.p4"
