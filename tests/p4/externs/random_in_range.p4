// A random number lies within its bounds.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> r;
        random(r, 10, 20);
        hdr.data.d = (r >= 10 && r <= 20) ? 8w1 : 8w0;
    }
}

#include "../include/main.p4"
