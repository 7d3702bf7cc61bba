// A later egress_spec undoes a drop.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        mark_to_drop(std);
        std.egress_spec = 2;
    }
}

#include "../include/main.p4"
