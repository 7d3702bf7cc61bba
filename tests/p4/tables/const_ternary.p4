// The first matching entry written in the program wins.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.a : ternary;
            hdr.data.c : ternary;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            (0x11 &&& 0xFF, _) : set(1);
            (0x10 &&& 0xF0, 1) : set(2);
            (_, _) : set(3);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
