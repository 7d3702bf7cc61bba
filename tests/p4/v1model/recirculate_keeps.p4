// A recirculated packet is the one egress sent, with the metadata kept for it.
#define OWN_EGRESS
#define OWN_METADATA
struct metadata {
    @field_list(3)
    bit<8> round;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.instance_type == 4) {
            hdr.data.e = meta.round;
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (meta.round == 0) {
            hdr.data.d = 99;
            meta.round = 5;
            recirculate_preserving_field_list(3);
        }
    }
}

#include "../include/main.p4"
