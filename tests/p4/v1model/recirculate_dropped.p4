// A drop in egress goes before a recirculation.
#include "../include/one_header.p4"

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.data.b1 == 1) {
            hdr.data.b1 = 2;
            recirculate_preserving_field_list(0);
            if (hdr.data.b2 == 1) {
                mark_to_drop(std);
            }
        }
    }
}

#include "../include/after.p4"
