// A direct counter counts per entry.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action set(bit<8> v) {
        hdr.data.d = v;
        hits.count();
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
        counters = hits;
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
