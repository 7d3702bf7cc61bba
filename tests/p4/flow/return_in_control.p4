// A return leaves the control; egress still runs.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.a == 0) {
            hdr.data.d = 50;
            return;
        }
        hdr.data.d = 60;
    }
}

#include "../include/main.p4"
