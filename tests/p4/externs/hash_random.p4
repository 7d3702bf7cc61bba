// The algorithm `random` gives anything within the range.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.h1, HashAlgorithm.random, 16w50, { hdr.data.w1 }, 32w10);
        if (hdr.data.h1 >= 50 && hdr.data.h1 < 60) {
            hdr.data.h1 = 1;
        }
    }
}

#include "../include/after.p4"
