// The lowest and the highest port.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = hdr.data.h1[8:0];
    }
}

#include "../include/after.p4"
