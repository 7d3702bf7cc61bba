// An optional key matches its value or anything.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.c : optional;
            hdr.data.e : optional;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            (1, 2) : set(1);
            (1, _) : set(2);
            (_, 2) : set(3);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
