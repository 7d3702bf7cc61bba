// Controls within controls.
#include "../include/data.p4"

control Inner(inout headers hdr) {
    apply {
        hdr.data.d = hdr.data.d + 1;
    }
}

control Outer(inout headers hdr) {
    Inner() i;
    apply {
        i.apply(hdr);
        hdr.data.d = hdr.data.d << 1;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Outer() o;

    apply {
        std.egress_spec = 2;
        o.apply(hdr);
    }
}

#include "../include/main.p4"
