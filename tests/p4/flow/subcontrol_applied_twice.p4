// One instance applied twice.
#include "../include/data.p4"

control C(inout bit<8> x) {
    apply {
        x = x + 1;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    C() c;

    apply {
        std.egress_spec = 2;
        c.apply(hdr.data.d);
        c.apply(hdr.data.e);
    }
}

#include "../include/main.p4"
