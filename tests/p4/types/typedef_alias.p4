// A typedef is another name for a type.
#include "../include/data.p4"

typedef bit<8> Byte;

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Byte x = hdr.data.d;
        bit<8> y = x;
        hdr.data.e = y + 1;
    }
}

#include "../include/main.p4"
