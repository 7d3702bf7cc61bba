// Structs are equal when all fields are.
#include "../include/data.p4"

struct p_t {
    bit<8> first;
    bit<8> second;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        p_t x = { hdr.data.d, 5 };
        p_t y = { 4, hdr.data.e };
        hdr.data.c = x == y ? 16w1 : 16w0;
    }
}

#include "../include/main.p4"
