// Several arguments from one entry.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<32> x, bit<16> y, bit<8> z) {
        hdr.data.a = x;
        hdr.data.c = y;
        hdr.data.d = z;
    }

    table t {
        key = {
            hdr.data.e : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
