// A parameter left out takes its default.
#include "../include/data.p4"

bit<8> plus(in bit<8> x, in bit<8> y = 5) {
    return x + y;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = plus(hdr.data.d);
        hdr.data.e = plus(hdr.data.e, 7);
    }
}

#include "../include/main.p4"
