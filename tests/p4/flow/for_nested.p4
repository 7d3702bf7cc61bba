// A break leaves the innermost loop only.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        for (bit<8> i in 1 .. 3) {
            for (bit<8> j in 1 .. 5) {
                if (j > i) {
                    break;
                }
                n = n + 1;
            }
        }
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
