// Annotations of all shapes change nothing by themselves.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    @name("renamed") @custom(some tokens, 1 + 2) @list[1, "two", true] @pairs[a=1, b="x"]
    action act() {
        hdr.data.e = 2;
    }

    apply {
        std.egress_spec = 2;
        @atomic {
            hdr.data.d = 1;
        }
        act();
    }
}

#include "../include/main.p4"
