// A ternary of booleans.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bool low = hdr.data.d < 128;
        bool r = low ? hdr.data.e == 2 : hdr.data.e != 2;
        hdr.data.c = r ? 16w1 : 16w0;
    }
}

#include "../include/main.p4"
