// A loop with start, condition and step.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<32> sum = 0;
        for (bit<8> i = 0; i < hdr.data.e; i = i + 1) {
            sum = sum + (bit<32>)i;
        }
        hdr.data.a = sum;
    }
}

#include "../include/main.p4"
