// Division and remainder of fields, as BMv2 does them.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 = hdr.data.w1 / hdr.data.w2;
        hdr.data.h1 = hdr.data.h1 % hdr.data.h2;
    }
}

#include "../include/after.p4"
