// Metadata start at zero for every packet and reach egress as ingress left them.
#include "../include/before.p4"

struct inner_t {
    bit<8> a;
    bool flag;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<16> count;
    inner_t inner;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.h1 = meta.count;
        hdr.data.b1 = meta.inner.a;
        meta.count = 0x1234;
        meta.inner.a = 0x56;
        meta.inner.flag = true;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.h2 = meta.count;
        hdr.data.b2 = meta.inner.a;
        if (meta.inner.flag) {
            hdr.data.b3 = 1;
        }
    }
}

#include "../include/after.p4"
