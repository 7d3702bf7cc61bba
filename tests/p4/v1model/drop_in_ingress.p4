// A packet marked to drop does not leave.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.a == 1) {
            mark_to_drop(std);
        }
    }
}

#include "../include/main.p4"
