#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action set(bit<8> v) {
        hdr.data.d = v;
    }
    table t {
        key = {
            hdr.data.a : exact;
        }
        actions = { set; }
    }

    apply {
        t.apply();
    }
}

#include "../../../p4/include/main.p4"
