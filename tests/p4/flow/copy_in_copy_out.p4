// Arguments are copied in, and copied out in order when the call ends.
#include "../include/one_header.p4"

void both(inout bit<8> x, inout bit<8> y) {
    x = x + 1;
    y = y + 0x10;
}

void swap(inout bit<32> a, inout bit<32> b) {
    bit<32> t = a;
    a = b;
    b = t;
}

bit<8> bump(inout bit<8> x) {
    x = x + 1;
    return x;
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action seen(inout bit<8> x, in bit<8> y) {
        x = y;
        hdr.data.b4 = x + hdr.data.b3;
    }
    apply {
        std.egress_spec = 2;
        both(hdr.data.b1, hdr.data.b1);
        swap(hdr.data.w1, hdr.data.w2);
        hdr.data.b2 = bump(hdr.data.b2) + bump(hdr.data.b2);
        seen(hdr.data.b3, 0x33);
        both(hdr.data.h1[15:8], hdr.data.h1[7:0]);
    }
}

#include "../include/after.p4"
