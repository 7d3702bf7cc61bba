// The number of a field list may be a constant, where it is annotated and where it is used.
#define OWN_EGRESS
#define OWN_METADATA
const bit<8> KEPT = 1;

struct metadata {
    @field_list(KEPT)
    bit<8> kept;
    bit<8> lost;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.kept = 0x11;
        meta.lost = 0x22;
        clone_preserving_field_list(CloneType.I2E, 5, KEPT);
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 1) {
            hdr.data.d = meta.kept;
            hdr.data.e = meta.lost;
        }
    }
}

#include "../include/main.p4"
