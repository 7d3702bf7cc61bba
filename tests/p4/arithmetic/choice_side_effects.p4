// Only the chosen branch of a ternary runs.
#include "../include/data.p4"

bit<8> step(inout bit<8> n, in bit<8> by) {
    n = n + by;
    return n + 100;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        bit<8> r = hdr.data.a == 0 ? step(n, 1) : step(n, 10);
        hdr.data.d = n;
        hdr.data.e = r;
    }
}

#include "../include/main.p4"
