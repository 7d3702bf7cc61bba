// A macro over several lines.
#define SET(field, value) \
    if (hdr.data.isValid()) { \
        field = value; \
    }
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        SET(hdr.data.d, 4)
        SET(hdr.data.e, 5)
    }
}

#include "../include/main.p4"
