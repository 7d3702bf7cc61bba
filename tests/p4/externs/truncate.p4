// truncate cuts the packet that leaves: headers and payload together.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.b1 == 1) {
            truncate(18);
        } else if (hdr.data.b1 == 2) {
            truncate((bit<32>)hdr.data.h1);
        }
    }
}

#include "../include/after.p4"
