// A generic control.
#include "../include/data.p4"

control Copy<T>(out T to, in T source) {
    apply {
        to = source;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Copy<bit<8>>() c;

    apply {
        std.egress_spec = 2;
        c.apply(hdr.data.d, hdr.data.e);
    }
}

#include "../include/main.p4"
