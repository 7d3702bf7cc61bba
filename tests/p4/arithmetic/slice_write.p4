// A slice on the left changes its own bits only.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a[23:8] = hdr.data.c;
    }
}

#include "../include/main.p4"
