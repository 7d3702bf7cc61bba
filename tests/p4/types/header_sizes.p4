// What a header or struct knows about its size.
#include "../include/before.p4"

header odd_t {
    bit<3> a;
    bit<21> b;
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
        odd_t odd;
        hdr.data.b1 = (bit<8>)hdr.data.minSizeInBytes();
        hdr.data.b2 = (bit<8>)hdr.data.minSizeInBits();
        hdr.data.b3 = (bit<8>)odd.minSizeInBits();
    }
}

#include "../include/after.p4"
