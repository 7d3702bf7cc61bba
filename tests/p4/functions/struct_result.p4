// A function returns a struct.
#include "../include/data.p4"

struct pair_t {
    bit<16> sum;
    bit<8> low;
}

pair_t make(in bit<8> x, in bit<8> y) {
    pair_t r = { (bit<16>)x + (bit<16>)y, x < y ? x : y };
    return r;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        pair_t p = make(hdr.data.d, hdr.data.e);
        hdr.data.c = p.sum;
        hdr.data.d = p.low;
    }
}

#include "../include/main.p4"
