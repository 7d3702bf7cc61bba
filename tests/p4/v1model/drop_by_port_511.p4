// The egress specification 511 drops.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        std.egress_spec = 511;
    }
}

#include "../include/main.p4"
