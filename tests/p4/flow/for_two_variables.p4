// A loop with two variables and two steps.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> j = 0;
        for (bit<8> i = 0, bit<8> k = 10; i < k; i += 1, k -= 1) {
            j = j + 1;
        }
        hdr.data.d = j;
    }
}

#include "../include/main.p4"
