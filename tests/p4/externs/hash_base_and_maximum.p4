// A hash from base up to base + maximum - 1.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.c, HashAlgorithm.crc16, 16w100, { hdr.data.a, hdr.data.b }, 16w10);
    }
}

#include "../include/main.p4"
