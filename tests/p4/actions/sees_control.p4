// An action sees the variables of its control.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<8> x = 0;
    action act() {
        x = x + 3;
    }

    apply {
        std.egress_spec = 2;
        bit<8> unused = 0;
        x = hdr.data.e;
        act();
        hdr.data.d = x;
    }
}

#include "../include/main.p4"
