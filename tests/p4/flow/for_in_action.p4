// A loop inside an action.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action act(in bit<8> rounds) {
        bit<8> n = 0;
        for (bit<8> i = 0; i < rounds; i = i + 1) {
            n = n + 3;
        }
        hdr.data.d = n;
    }

    apply {
        std.egress_spec = 2;
        act(hdr.data.e);
    }
}

#include "../include/main.p4"
