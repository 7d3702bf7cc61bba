// A resubmission goes before a drop and before a multicast.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.instance_type == 0) {
            resubmit_preserving_field_list(0);
            if (hdr.data.b1 == 1) {
                mark_to_drop(std);
            } else {
                std.mcast_grp = 1;
            }
        } else {
            hdr.data.b2 = 0x22;
        }
    }
}

#include "../include/after.p4"
