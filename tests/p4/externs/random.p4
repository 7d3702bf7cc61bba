// random gives numbers within its bounds, both included.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> low;
        bit<16> any;
        random(low, 8w10, 8w13);
        random(any, 16w0, 16w0xffff);
        random(hdr.data.h2, hdr.data.h1, hdr.data.h1);
        if (low >= 10 && low <= 13) {
            hdr.data.b1 = 1;
        }
    }
}

#include "../include/after.p4"
