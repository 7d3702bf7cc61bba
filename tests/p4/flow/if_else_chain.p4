// A chain of else-ifs takes the first that holds.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.a == 0) {
            hdr.data.d = 1;
        } else if (hdr.data.a < 5) {
            hdr.data.d = 2;
        } else if (hdr.data.a < 100) {
            hdr.data.d = 3;
        } else {
            hdr.data.d = 4;
        }
    }
}

#include "../include/main.p4"
