// Entries with priorities: the largest wins.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.a : ternary;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        entries = {
            priority = 10: _ : set(1);
            priority = 30: 0x10 &&& 0xF0 : set(2);
            priority = 20: 0x01 &&& 0x0F : set(3);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
