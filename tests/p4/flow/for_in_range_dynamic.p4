// A range between fields; an empty one runs no body.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        for (bit<8> i in hdr.data.e .. hdr.data.d) {
            n = n + 1;
        }
        hdr.data.c = (bit<16>)n;
    }
}

#include "../include/main.p4"
