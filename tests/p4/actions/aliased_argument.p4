// Inside the action a parameter is a copy.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action act(inout bit<8> x) {
        hdr.data.d = 100;
        hdr.data.e = x;
        x = 5;
    }

    apply {
        std.egress_spec = 2;
        act(hdr.data.d);
    }
}

#include "../include/main.p4"
