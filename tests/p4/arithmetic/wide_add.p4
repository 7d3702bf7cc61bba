// Numbers wider than 64 bits.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<96> x = hdr.data.a ++ hdr.data.b ++ 32w0xFFFFFFFF;
        x = x + 1;
        hdr.data.a = x[95:64];
        hdr.data.b = x[63:32];
        hdr.data.c = x[15:0];
    }
}

#include "../include/main.p4"
