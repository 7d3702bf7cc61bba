// PortId_t is the type of ports.
#define V1MODEL_VERSION 20200408
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        PortId_t p = std.ingress_port;
        hdr.data.c = (bit<16>)p;
    }
}

#include "../include/main.p4"
