// ++ joins numbers of any widths; the left one is the high one.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 = hdr.data.b1 ++ hdr.data.h1 ++ hdr.data.b2;
        hdr.data.w2 = 4w0xa ++ hdr.data.h2[11:0] ++ 16w0x1234;
        bit<64> both = hdr.data.w1 ++ hdr.data.w2;
        hdr.data.h2 = both[39:24];
    }
}

#include "../include/after.p4"
