// Without default_action a miss changes nothing.
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
        }
        size = 16;
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
