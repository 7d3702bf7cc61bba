// Ternaries nest to the right.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = hdr.data.d == 0 ? 8w10 : hdr.data.d < 100 ? 8w20 : 8w30;
    }
}

#include "../include/main.p4"
