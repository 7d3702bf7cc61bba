#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<32> h;
        hash(h, HashAlgorithm.crc32, 32w0, { "text" }, 32w10);
    }
}

#include "../../../p4/include/main.p4"
