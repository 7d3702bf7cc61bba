// The port a packet leaves by is known in egress.
#define OWN_EGRESS
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;

    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.data.c = (bit<16>)std.egress_port;
    }
}

#include "../include/main.p4"
