// Comparison '==' of unsigned numbers.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.data.a == hdr.data.b) {
            hdr.data.d = 1;
        } else {
            hdr.data.d = 0;
        }
    }
}

#include "../include/main.p4"
