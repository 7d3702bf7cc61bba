// Data may be a single field or a header's worth of them; one way in, one hash out.
#include "../include/before.p4"

struct pair_t {
    bit<16> a;
    bit<16> b;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        pair_t pair = { hdr.data.h1, hdr.data.h2 };
        hash(hdr.data.w1, HashAlgorithm.crc32, 32w0, { pair.a, pair.b }, 33w0x100000000);
        hash(hdr.data.w2, HashAlgorithm.crc32, 32w0, { hdr.data.h1 ++ hdr.data.h2 }, 33w0x100000000);
        if (hdr.data.w1 == hdr.data.w2) {
            hdr.data.b1 = 1;
        }
    }
}

#include "../include/after.p4"
