// A sub-control with a constructor parameter; each instance has its own.
#include "../include/data.p4"

control Add(inout headers hdr)(bit<8> by) {
    apply {
        hdr.data.d = hdr.data.d + by;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Add(1) one;
    Add(10) ten;

    apply {
        std.egress_spec = 2;
        one.apply(hdr);
        ten.apply(hdr);
    }
}

#include "../include/main.p4"
