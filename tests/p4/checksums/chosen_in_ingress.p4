// A checksum whose condition ingress decides, over fields egress changes.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bool wanted;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.wanted = hdr.data.b1 == 1;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.w1 = hdr.data.w1 + 1;
    }
}

#define OWN_UPDATE
control update_sums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.wanted && hdr.data.b2 != 9, { hdr.data.w1, hdr.data.w2 },
                        hdr.data.h1, HashAlgorithm.csum16);
    }
}

#include "../include/after.p4"
