// A limit beyond the packet's length changes nothing.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        truncate(100);
    }
}

#include "../include/main.p4"
