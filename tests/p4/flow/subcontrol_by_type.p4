// A control applied by its type, without naming an instance.
#include "../include/data.p4"

control Inc(inout bit<8> x) {
    apply {
        x = x + 1;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Inc.apply(hdr.data.d);
    }
}

#include "../include/main.p4"
