// An if without else.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.a == 1) {
            hdr.data.d = 77;
        }
    }
}

#include "../include/main.p4"
