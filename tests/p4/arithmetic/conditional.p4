// ?: in values, nested, and as the index of a choice between fields.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = hdr.data.b1 > 9 ? 9w3 : 2;
        hdr.data.w1 = hdr.data.w1 > hdr.data.w2 ? hdr.data.w1 : hdr.data.w2;
        hdr.data.b2 = hdr.data.b1 == 0 ? 8w10 : (hdr.data.b1 == 1 ? 8w11 : 8w12);
        bool small = hdr.data.b1 < 5 ? true : false;
        hdr.data.b3 = small ? hdr.data.b3 + 1 : hdr.data.b3 - 1;
    }
}

#include "../include/after.p4"
