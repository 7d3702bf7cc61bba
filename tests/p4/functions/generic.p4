// A generic function works at every width.
#include "../include/data.p4"

T choose<T>(in bool first, in T x, in T y) {
    if (first) {
        return x;
    }
    return y;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = choose(hdr.data.a > hdr.data.b, hdr.data.a, hdr.data.b);
        hdr.data.d = choose<bit<8>>(hdr.data.d > hdr.data.e, hdr.data.d, hdr.data.e);
    }
}

#include "../include/main.p4"
