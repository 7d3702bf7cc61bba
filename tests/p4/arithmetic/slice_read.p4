// A slice reads bits high to low.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = hdr.data.a[27:20];
    }
}

#include "../include/main.p4"
