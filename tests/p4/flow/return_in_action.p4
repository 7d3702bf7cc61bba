// A return ends its action only.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action act() {
        if (hdr.data.a == 0) {
            hdr.data.d = 50;
            return;
        }
        hdr.data.d = 60;
    }

    apply {
        std.egress_spec = 2;
        act();
        hdr.data.e = 99;
    }
}

#include "../include/main.p4"
