// A serializable enum as a key.
#include "../include/data.p4"

enum bit<8> Proto {
    tcp = 6,
    udp = 17
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Proto kind;
    action set(bit<8> v) {
        hdr.data.d = v;
    }

    table t {
        key = {
            kind : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            Proto.tcp : set(60);
            Proto.udp : set(170);
        }
    }

    apply {
        std.egress_spec = 2;
        kind = (Proto)hdr.data.d;
        t.apply();
    }
}

#include "../include/main.p4"
