// An exit in a sub-control ends the caller too, its results copied out.
#include "../include/data.p4"

control Inner(inout headers hdr, out bit<8> r) {
    apply {
        r = 7;
        if (hdr.data.a == 0) {
            hdr.data.d = 50;
            exit;
        }
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Inner() inner;

    apply {
        std.egress_spec = 2;
        bit<8> r = 0;
        inner.apply(hdr, r);
        hdr.data.e = r;
    }
}

#include "../include/main.p4"
