// Macros, with and without parameters.
#define LIMIT 123
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.d = LIMIT;
        hdr.data.e = MAX(hdr.data.e, 8w50);
    }
}

#include "../include/main.p4"
