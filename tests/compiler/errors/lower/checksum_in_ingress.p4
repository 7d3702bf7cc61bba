#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        update_checksum(true, { hdr.data.a }, hdr.data.c, HashAlgorithm.csum16);
    }
}

#include "../../../p4/include/main.p4"
