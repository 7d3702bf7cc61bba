// A shift to the right of a signed number keeps its sign.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = (bit<32>)((int<32>)hdr.data.a >> 4);
    }
}

#include "../include/main.p4"
