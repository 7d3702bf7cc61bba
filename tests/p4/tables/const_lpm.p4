// Prefixes written in the program.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            hdr.data.a : lpm;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            0x0A000000 &&& 0xFF000000 : set(8);
            0x0A0A0000 &&& 0xFFFF0000 : set(16);
            _ : set(1);
        }
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
