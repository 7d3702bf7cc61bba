// Operands are evaluated from left to right.
#include "../include/data.p4"

bit<8> next(inout bit<8> n) {
    n = n + 1;
    return 10;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 1;
        hdr.data.d = n + next(n) + n;
        hdr.data.e = n;
    }
}

#include "../include/main.p4"
