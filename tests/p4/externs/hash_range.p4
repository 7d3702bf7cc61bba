// The result is base + hash modulo max; max 0 gives base itself.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.h1, HashAlgorithm.identity, 16w100, { hdr.data.w1 }, 32w10);
        hash(hdr.data.h2, HashAlgorithm.identity, 16w0x1234, { hdr.data.w1 }, 32w0);
        hash(hdr.data.b1, HashAlgorithm.identity, hdr.data.b3, { hdr.data.w1 }, hdr.data.b4);
    }
}

#include "../include/after.p4"
