// A return in a sub-control goes back to its caller.
#include "../include/data.p4"

control C(inout headers hdr) {
    apply {
        hdr.data.d = 1;
        if (hdr.data.a == 0) {
            return;
        }
        hdr.data.d = 2;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    C() c;

    apply {
        std.egress_spec = 2;
        c.apply(hdr);
        hdr.data.e = 70;
    }
}

#include "../include/main.p4"
