// Every op= there is.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.w1 += 1;
        hdr.data.w2 -= hdr.data.w1;
        hdr.data.h1 *= 3;
        hdr.data.h2 <<= 4;
        hdr.data.h2 >>= 8;
        hdr.data.b1 &= 0x0f;
        hdr.data.b2 |= 0xf0;
        hdr.data.b3 ^= 0xff;
        hdr.data.b4 |+|= 0x20;
        hdr.data.b1 |-|= 2;
        hdr.data.w1[31:16] += 1;
    }
}

#include "../include/after.p4"
