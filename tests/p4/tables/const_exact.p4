// Entries written in the program.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.d : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            1 : set(11);
            0x22 : set(22);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
