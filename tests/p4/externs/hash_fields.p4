// Fields enter a hash one after another, without gaps, filled up with zeros at the end.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.w1, HashAlgorithm.identity, 32w0,
             { hdr.data.b1[3:0], hdr.data.b2[3:0], hdr.data.b3, hdr.data.h1 },
             33w0x100000000);
        hash(hdr.data.h2, HashAlgorithm.csum16, 16w0, { hdr.data.h1, hdr.data.b4 }, 32w0x10000);
    }
}

#include "../include/after.p4"
