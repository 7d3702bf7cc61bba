// A sub-control with in, out and inout parameters.
#include "../include/data.p4"

control C(in bit<32> x, out bit<8> y, inout bit<8> z) {
    apply {
        y = x[7:0];
        z = z + 1;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    C() c;

    apply {
        std.egress_spec = 2;
        c.apply(hdr.data.a, hdr.data.d, hdr.data.e);
    }
}

#include "../include/main.p4"
