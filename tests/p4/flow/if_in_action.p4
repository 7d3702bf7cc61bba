// A branch inside an action.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action act(in bit<32> x) {
        if (x < 5) {
            hdr.data.d = 1;
        } else {
            hdr.data.d = 2;
        }
    }

    apply {
        std.egress_spec = 2;
        act(hdr.data.a);
    }
}

#include "../include/main.p4"
