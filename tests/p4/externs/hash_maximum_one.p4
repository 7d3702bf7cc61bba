// A hash modulo one is its base.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.c, HashAlgorithm.crc32, 16w7, { hdr.data.a }, 16w1);
    }
}

#include "../include/main.p4"
