// A range may end at its type's largest value.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        for (bit<8> i in 250 .. 255) {
            n = n + 1;
        }
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
