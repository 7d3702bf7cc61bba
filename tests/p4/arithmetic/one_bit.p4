// Fields of one bit: addition is exclusive or.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<1> x = hdr.data.d[0:0];
        bit<1> y = hdr.data.e[0:0];
        hdr.data.c = (bit<16>)(x + y);
    }
}

#include "../include/main.p4"
