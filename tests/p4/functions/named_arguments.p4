// Arguments by name, in any order.
#include "../include/data.p4"

bit<8> minus(in bit<8> x, in bit<8> y) {
    return x - y;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = minus(y = hdr.data.e, x = hdr.data.d);
    }
}

#include "../include/main.p4"
