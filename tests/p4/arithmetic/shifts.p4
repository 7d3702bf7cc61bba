// Shifts by constants and by fields; beyond the width nothing is left, or only the sign.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 = hdr.data.w1 << hdr.data.b1;
        hdr.data.w2 = hdr.data.w2 >> hdr.data.b1;
        hdr.data.h1 = (bit<16>)((int<16>)hdr.data.h1 >> hdr.data.b1);
        hdr.data.h2 = hdr.data.h2 << 4;
        hdr.data.b3 = (hdr.data.b3 >> 1) | (hdr.data.b3 << 7);
    }
}

#include "../include/after.p4"
