// A cast to fewer bits keeps the low ones.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = (bit<8>)hdr.data.a;
    }
}

#include "../include/main.p4"
