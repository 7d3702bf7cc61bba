// Fields of invalid headers do not enter a hash.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        data_t other;
        bit<32> h;
        hash(h, HashAlgorithm.crc32, 32w0, { hdr.data.b, other.a, hdr.data.c }, 32w0xFFFFFFFF);
        hdr.data.a = h;
    }
}

#include "../include/main.p4"
