// A function returns a value.
#include "../include/data.p4"

bit<32> twice(in bit<32> x) {
    return x << 1;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = twice(hdr.data.a) + twice(1);
    }
}

#include "../include/main.p4"
