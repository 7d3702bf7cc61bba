// A struct from a list, and from named fields in another order.
#include "../include/data.p4"

struct p_t {
    bit<8> first;
    bit<8> second;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        p_t x = { hdr.data.d, hdr.data.e };
        p_t y = { second = hdr.data.d, first = hdr.data.e };
        hdr.data.c = x.first ++ y.first;
    }
}

#include "../include/main.p4"
