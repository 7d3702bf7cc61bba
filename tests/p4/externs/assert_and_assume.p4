// Assertions that hold.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        assert(hdr.data.isValid());
        assume(hdr.data.a != 0xDEADBEEF);
        hdr.data.d = 1;
    }
}

#include "../include/main.p4"
