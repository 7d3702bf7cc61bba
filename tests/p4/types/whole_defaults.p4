// The default value '...' stands for the whole of what is assigned.
#include "../include/data.p4"

struct p_t {
    bit<8> first;
    bit<8> second;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        p_t x = { first = hdr.data.d, second = hdr.data.e };
        if (hdr.data.c == 1) {
            x = ...;
        }
        if (hdr.data.c == 2) {
            hdr.data.a = ...;
        }
        if (hdr.data.c == 3) {
            hdr.data = ...;
        } else {
            hdr.data.d = x.second;
            hdr.data.e = x.first;
        }
    }
}

#include "../include/main.p4"
