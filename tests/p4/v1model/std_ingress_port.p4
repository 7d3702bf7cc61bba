// The port a packet came in by.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.c = (bit<16>)std.ingress_port;
    }
}

#include "../include/main.p4"
