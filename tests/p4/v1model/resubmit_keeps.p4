// A resubmitted packet starts anew, as it arrived, with the metadata kept for it.
#define OWN_EGRESS
#define OWN_METADATA
struct metadata {
    @field_list(2)
    bit<8> round;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.instance_type == 0) {
            meta.round = 7;
            hdr.data.d = 99;
            resubmit_preserving_field_list(2);
        } else {
            hdr.data.e = meta.round;
            hdr.data.c = (bit<16>)std.instance_type;
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {

    }
}

#include "../include/main.p4"
