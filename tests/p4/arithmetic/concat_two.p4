// Concatenation puts the left operand on top.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.c = hdr.data.d ++ hdr.data.e;
    }
}

#include "../include/main.p4"
