// return leaves the function, the action or the control it stands in, no more.
#include "../include/one_header.p4"

bit<8> bounded(in bit<8> x) {
    if (x > 100) {
        return 100;
    }
    if (x == 0) {
        return 1;
    }
    return x;
}

control inner(inout bit<8> value) {
    apply {
        if (value == 1) {
            return;
        }
        value = value + 1;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    inner() step;

    action maybe(in bit<8> x) {
        hdr.data.b2 = 1;
        return;
        hdr.data.b2 = x;
    }
    apply {
        std.egress_spec = 2;
        hdr.data.b1 = bounded(hdr.data.b1);
        step.apply(hdr.data.b1);
        maybe(7);
        if (hdr.data.b3 == 1) {
            hdr.data.b3 = 0x33;
            return;
        }
        hdr.data.b4 = 4;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.h1 = 0x1111;
        if (hdr.data.b3 == 0x33) {
            return;
        }
        hdr.data.h2 = 0x2222;
    }
}

#include "../include/after.p4"
