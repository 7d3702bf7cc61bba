// A port set after mark_to_drop sends the packet after all; 511 drops without it.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            mark_to_drop(std);
            std.egress_spec = 3;
        } else if (hdr.data.b1 == 2) {
            std.egress_spec = 511;
        } else if (hdr.data.b1 == 3) {
            mark_to_drop(std);
            exit;
        }
    }
}

#include "../include/after.p4"
