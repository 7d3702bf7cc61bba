#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets) c;
    action a() {}
    table t {
        actions = { a; }
        counters = c;
    }
    table u {
        actions = { a; }
        counters = c;
    }

    apply {
        t.apply();
        u.apply();
    }
}

#include "../../../p4/include/main.p4"
