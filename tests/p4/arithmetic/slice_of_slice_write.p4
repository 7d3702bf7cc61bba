// A slice of a slice on the left.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a[23:8][11:4] = hdr.data.d;
    }
}

#include "../include/main.p4"
