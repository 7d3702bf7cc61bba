// The control plane sees the names given by @name.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    @name("my_set") action set(@name("value") bit<8> v) {
        hdr.data.d = v;
    }

    @name("my_table") table t {
        key = {
            hdr.data.a : exact @name("my_key");
        }
        actions = {
            set;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        std.egress_spec = 2;
        t.apply();
    }
}

#include "../include/main.p4"
