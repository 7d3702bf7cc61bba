#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<8> never = 5;
    bit<8> at_all;
    action a() {}
    action unused() {}
    table t {
        actions = { a; }
        default_action = a();
    }
    table forgotten {
        actions = { a; }
        default_action = a();
    }

    apply {
        t.apply();
    }
}

#include "../../../p4/include/main.p4"
