// A slice as an inout argument.
#include "../include/data.p4"

void increment(inout bit<8> x) {
    x = x + 1;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        increment(hdr.data.a[15:8]);
    }
}

#include "../include/main.p4"
