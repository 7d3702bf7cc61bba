// A variable of the control starts anew with every packet.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<8> n = 41;

    apply {
        std.egress_spec = 2;
        n = n + 1;
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
