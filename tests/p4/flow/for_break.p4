// A break leaves the loop.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        for (bit<8> i = 0; i < 100; i = i + 1) {
            if (i == hdr.data.e) {
                break;
            }
            n = n + 2;
        }
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
