// A range holds both its ends.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.c : range;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            10 .. 20 : set(1);
            500 : set(2);
            0xFF00 .. 0xFFFF : set(3);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
