// An action calls another.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action inner(in bit<8> by) {
        hdr.data.d = hdr.data.d + by;
    }
    action outer() {
        inner(10);
        inner(1);
    }

    apply {
        std.egress_spec = 2;
        outer();
    }
}

#include "../include/main.p4"
