// A bool kept in metadata.
#define OWN_METADATA
struct metadata {
    bool seen;
}
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        meta.seen = hdr.data.d > 3;
        if (meta.seen) {
            hdr.data.e = 1;
        } else {
            hdr.data.e = 0;
        }
    }
}

#include "../include/main.p4"
