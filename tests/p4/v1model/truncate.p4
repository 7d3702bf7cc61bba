// A packet cut to its first bytes.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        truncate(6);
    }
}

#include "../include/main.p4"
