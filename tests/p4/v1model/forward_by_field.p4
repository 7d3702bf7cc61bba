// The port taken from the packet.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>)hdr.data.e;
    }
}

#include "../include/main.p4"
