// Dropped in egress; a change of egress_spec to another port there moves nothing.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.data.b1 == 1) {
            mark_to_drop(std);
        } else if (hdr.data.b1 == 2) {
            std.egress_spec = 3;
        } else if (hdr.data.b1 == 3) {
            std.egress_spec = 511;
        } else if (hdr.data.b1 == 4) {
            mark_to_drop(std);
            std.egress_spec = 0;
        }
        hdr.data.b2 = (bit<8>)std.egress_port;
    }
}

#include "../include/after.p4"
