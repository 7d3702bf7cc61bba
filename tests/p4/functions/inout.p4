// An inout argument is changed.
#include "../include/data.p4"

void swap(inout bit<32> x, inout bit<32> y) {
    bit<32> t = x;
    x = y;
    y = t;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        swap(hdr.data.a, hdr.data.b);
    }
}

#include "../include/main.p4"
