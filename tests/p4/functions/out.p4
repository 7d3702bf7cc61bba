// An out argument gets its value from the function.
#include "../include/data.p4"

void split(in bit<16> x, out bit<8> high, out bit<8> low) {
    high = x[15:8];
    low = x[7:0];
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        split(hdr.data.c, hdr.data.d, hdr.data.e);
    }
}

#include "../include/main.p4"
