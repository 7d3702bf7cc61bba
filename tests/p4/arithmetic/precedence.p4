// Operators bind as the language says.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = 32w2 + 32w3 * 32w4 << 1 & 0xff | 1;
    }
}

#include "../include/main.p4"
