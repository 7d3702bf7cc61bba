// The identity hash is the value itself.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hash(hdr.data.c, HashAlgorithm.identity, 16w0, { hdr.data.d, hdr.data.e }, 16w0xFFFF);
    }
}

#include "../include/main.p4"
