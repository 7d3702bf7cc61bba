// A hash chooses one of four paths, the same for a flow.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<16> path;
        hash(path, HashAlgorithm.crc16, 16w0, { hdr.data.a, hdr.data.b, hdr.data.c }, 16w4);
        hdr.data.d = (bit<8>)path;
    }
}

#include "../include/main.p4"
