// Tuples: made of lists, compared, taken apart by index.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        tuple<bit<16>, bit<8>> pair = { hdr.data.h1, hdr.data.b1 };
        tuple<bit<16>, bit<8>> other = { hdr.data.h2, hdr.data.b2 };
        if (pair == other) {
            hdr.data.b3 = 1;
        }
        hdr.data.w1 = pair[0] ++ other[0];
        hdr.data.b4 = pair[1] ^ other[1];
        pair = other;
        hdr.data.h1 = pair[0];
    }
}

#include "../include/after.p4"
