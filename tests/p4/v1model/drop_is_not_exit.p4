// Marking to drop does not stop the control.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        mark_to_drop(std);
        if (hdr.data.a == 2) {
            std.egress_spec = 2;
            hdr.data.d = 1;
        }
    }
}

#include "../include/main.p4"
