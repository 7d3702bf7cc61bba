// Numbers in all bases, with widths and underscores.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = 0xDEAD_BEEF;
        hdr.data.b = 32w1_000_000;
        hdr.data.c = 0b1010_0101_1111_0000;
        hdr.data.d = 8w0o17;
        hdr.data.e = 0d99;
    }
}

#include "../include/main.p4"
