// A hit kept in a variable.
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
        bool found = t.apply().hit;
        hdr.data.e = found ? 8w1 : 8w2;
    }
}

#include "../include/main.p4"
