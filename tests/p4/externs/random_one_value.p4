// A random number between equal bounds.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        random(hdr.data.c, 16w77, 16w77);
    }
}

#include "../include/main.p4"
