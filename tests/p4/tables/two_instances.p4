// Two instances of one control have tables of their own.
#include "../include/data.p4"

control Look(inout headers hdr, in bit<32> x) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }
    table t {
        key = {
            x : exact;
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
    }
    apply {
        t.apply();
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Look() first;
    Look() second;

    apply {
        std.egress_spec = 2;
        first.apply(hdr, hdr.data.a);
        second.apply(hdr, hdr.data.a);
    }
}

#include "../include/main.p4"
