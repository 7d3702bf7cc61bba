// A dropped packet is cloned all the same.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        clone(CloneType.I2E, 5);
        mark_to_drop(std);
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.e = (bit<8>)std.instance_type;
    }
}

#include "../include/main.p4"
