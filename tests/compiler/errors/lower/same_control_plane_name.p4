#include "../../../p4/include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    @name("x") action a() {}
    @name("x") action b() {}
    table t {
        actions = { a; b; }
    }

    apply {
        a();
        t.apply();
    }
}

#include "../../../p4/include/main.p4"
