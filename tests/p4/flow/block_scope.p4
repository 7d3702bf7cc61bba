// A block hides outer names and forgets its own.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> x = 1;
        {
            bit<8> x = 2;
            hdr.data.d = x;
        }
        hdr.data.e = x;
    }
}

#include "../include/main.p4"
