// Saturating addition of signed numbers stops at both ends.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = (bit<8>)((int<8>)hdr.data.d |+| (int<8>)hdr.data.e);
    }
}

#include "../include/main.p4"
