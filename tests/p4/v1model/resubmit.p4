// A resubmitted packet starts over as it came, with the metadata kept for it.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    @field_list(2)
    bit<8> round;
    @field_list(2, 3)
    bit<8> both;
    bit<8> lost;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b4 = (bit<8>)std.instance_type;
        if (meta.round < hdr.data.b1) {
            meta.round = meta.round + 1;
            meta.both = meta.both + 0x10;
            meta.lost = 0x77;
            hdr.data.b3 = 0xff;
            resubmit_preserving_field_list(2);
        } else {
            hdr.data.b2 = meta.round;
            hdr.data.h1 = (bit<16>)meta.both;
            hdr.data.h2 = (bit<16>)meta.lost;
        }
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.w1 = std.instance_type;
    }
}

#include "../include/after.p4"
