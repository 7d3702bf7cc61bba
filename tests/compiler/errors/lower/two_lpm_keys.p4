#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action a() {}
    table t {
        key = {
            hdr.data.a : lpm;
            hdr.data.b : lpm;
        }
        actions = { a; }
    }

    apply {
        t.apply();
    }
}

#include "../../../p4/include/main.p4"
