#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action a() {}
    table t {
        key = {
            hdr.data.a + 1 : exact;
        }
        actions = { a; }
    }

    apply {
        t.apply();
    }
}

#include "../../../p4/include/main.p4"
