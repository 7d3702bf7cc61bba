// Slices read and written, of fields and of expressions, one bit and many.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1[31:24] = hdr.data.w1[7:0];
        hdr.data.w1[3:0] = 0xf;
        hdr.data.w2[0:0] = hdr.data.w2[31:31];
        hdr.data.h1 = (hdr.data.h2 + 1)[15:8] ++ hdr.data.h2[7:0];
        hdr.data.b1[6:1] = hdr.data.b1[5:0];
    }
}

#include "../include/after.p4"
