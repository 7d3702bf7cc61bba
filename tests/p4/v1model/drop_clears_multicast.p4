// mark_to_drop takes back a multicast too; a group set afterwards counts.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.mcast_grp = 1;
        if (hdr.data.b1 == 1) {
            mark_to_drop(std);
        } else if (hdr.data.b1 == 2) {
            mark_to_drop(std);
            std.mcast_grp = 1;
        }
    }
}

#include "../include/after.p4"
