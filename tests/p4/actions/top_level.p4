// An action declared outside any control.
#include "../include/data.p4"

action add(inout bit<8> x, in bit<8> y) {
    x = x + y;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        add(hdr.data.d, 9);
    }
}

#include "../include/main.p4"
