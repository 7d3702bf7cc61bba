// A packet replicated to the ports of a group.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.mcast_grp = 9;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.c = std.egress_rid;
    }
}

#include "../include/main.p4"
