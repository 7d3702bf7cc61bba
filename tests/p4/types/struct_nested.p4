// Structs within structs, copied whole.
#include "../include/data.p4"

struct inner_t {
    bit<8> lo;
    bit<8> hi;
}

struct outer_t {
    inner_t inner;
    bit<8> n;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        outer_t x;
        x.inner.lo = hdr.data.d;
        x.inner.hi = hdr.data.e;
        x.n = 7;
        outer_t y = x;
        hdr.data.c = y.inner.hi ++ y.inner.lo;
        hdr.data.d = y.n;
    }
}

#include "../include/main.p4"
