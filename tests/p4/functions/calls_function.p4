// A function calls another.
#include "../include/data.p4"

bit<8> two(in bit<8> x) {
    return x + x;
}

bit<8> four(in bit<8> x) {
    return two(two(x));
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = four(hdr.data.d);
    }
}

#include "../include/main.p4"
