// A table applied over and over, its key changing.
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
    }

    apply {
        std.egress_spec = 2;
        for (bit<8> i = 0; i < 10; i = i + 1) {
            if (t.apply().hit) {
                hdr.data.e = hdr.data.e + 1;
            } else {
                break;
            }
        }
    }
}

#include "../include/main.p4"
