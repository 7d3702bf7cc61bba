// An action that exits ends the pipeline.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action stop() {
        hdr.data.d = 1;
        exit;
    }

    table t {
        key = {
            hdr.data.a : exact;
        }
        actions = {
            stop;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        std.egress_spec = 2;
        t.apply();
        hdr.data.e = 9;
    }
}

#include "../include/main.p4"
