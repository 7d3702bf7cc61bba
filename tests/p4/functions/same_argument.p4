// Copies go in and come out: the last out argument wins.
#include "../include/data.p4"

void both(inout bit<8> x, inout bit<8> y) {
    x = x + 1;
    y = y + 2;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        both(hdr.data.d, hdr.data.d);
    }
}

#include "../include/main.p4"
