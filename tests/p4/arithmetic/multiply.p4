// Products wrap; division and remainder of what is known when compiling.
#include "../include/one_header.p4"

const bit<16> DOZEN = 144 / 12;
const bit<16> REST = 1000 % 77;

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 = hdr.data.w1 * hdr.data.w2;
        hdr.data.h1 = hdr.data.h1 * DOZEN;
        hdr.data.h2 = REST;
        hdr.data.b2 = hdr.data.b1 * hdr.data.b1;
    }
}

#include "../include/after.p4"
