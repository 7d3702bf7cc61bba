// Labels that share a body, and actions without any.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }
    action wipe() {
        hdr.data.d = 0;
    }
    action keep() {}

    table t {
        key = {
            hdr.data.a : exact;
        }
        actions = {
            set;
            wipe;
            keep;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        std.egress_spec = 2;
        switch (t.apply().action_run) {
            set:
            wipe: { hdr.data.e = 1; }
        }
    }
}

#include "../include/main.p4"
