// Logical and, or, not.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bool x = hdr.data.d > 5;
        bool y = hdr.data.e > 5;
        hdr.data.c = 0;
        if (x && y) { hdr.data.c[0:0] = 1; }
        if (x || y) { hdr.data.c[1:1] = 1; }
        if (!x) { hdr.data.c[2:2] = 1; }
        if (x == y) { hdr.data.c[3:3] = 1; }
        if (x != y) { hdr.data.c[4:4] = 1; }
    }
}

#include "../include/main.p4"
