// |+| and |-| stop at the ends of their type's range.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b3 = hdr.data.b1 |+| hdr.data.b2;
        hdr.data.b4 = hdr.data.b1 |-| hdr.data.b2;
        hdr.data.h1 = (bit<16>)((int<16>)hdr.data.h1 |+| (int<16>)hdr.data.h2);
    }
}
#include "../include/after.p4"
