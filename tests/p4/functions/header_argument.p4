// A header as an inout argument.
#include "../include/data.p4"

void blank(inout data_t h) {
    if (h.isValid()) {
        h.a = 0;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        blank(hdr.data);
    }
}

#include "../include/main.p4"
