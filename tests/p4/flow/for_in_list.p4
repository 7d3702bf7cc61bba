// A loop over a list of values.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<32> sum = 0;
        for (bit<32> x in (list<bit<32>>){10, 200, 3000}) {
            sum = sum + x;
        }
        hdr.data.a = sum;
    }
}

#include "../include/main.p4"
