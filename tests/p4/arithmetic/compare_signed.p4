// Comparison of signed numbers knows negative ones.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if ((int<8>)hdr.data.d < (int<8>)hdr.data.e) {
            hdr.data.c = 1;
        } else {
            hdr.data.c = 0;
        }
    }
}

#include "../include/main.p4"
