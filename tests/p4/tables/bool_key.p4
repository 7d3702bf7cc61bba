// A bool as a key.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bool big;
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            big : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            true : set(10);
            false : set(20);
        }
    }

    apply {
        std.egress_spec = 2;
        big = hdr.data.a > 100;
        t.apply();
    }
}

#include "../include/main.p4"
