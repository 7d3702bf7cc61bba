// Copies for every port of a group's nodes; egress tells them apart by port and replication id.
#include "../include/one_header.p4"

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.mcast_grp = hdr.data.h1;
        hdr.data.b1 = 0x11;
    }
}

#define OWN_EGRESS
control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.data.b2 = (bit<8>)std.egress_port;
        hdr.data.h2 = std.egress_rid;
        hdr.data.b3 = (bit<8>)std.instance_type;
    }
}

#include "../include/after.p4"
