// A loop over a range, both ends included.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<32> sum = 0;
        for (bit<32> i in 3 .. 6) {
            sum = sum + i;
        }
        hdr.data.a = sum;
    }
}

#include "../include/main.p4"
