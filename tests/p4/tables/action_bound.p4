// An action with an argument bound by the table.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(out bit<8> to, in bit<8> base, bit<8> v) {
        to = base + v;
    }

    table t {
        key = {
            hdr.data.a : exact;
        }
        actions = {
            set(hdr.data.d, hdr.data.e);
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
