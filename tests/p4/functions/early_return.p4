// Returns on several paths.
#include "../include/data.p4"

bit<8> clamp(in bit<8> x, in bit<8> low, in bit<8> high) {
    if (x < low) {
        return low;
    }
    if (x > high) {
        return high;
    }
    return x;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = clamp(hdr.data.d, 5, 50);
    }
}

#include "../include/main.p4"
