// A group goes before a port.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            std.mcast_grp = 7;
        }
    }
}

#include "../include/after.p4"
