// A negated hit.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.a : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        std.egress_spec = 2;
        if (!t.apply().hit) {
            hdr.data.e = 20;
        }
    }
}

#include "../include/main.p4"
