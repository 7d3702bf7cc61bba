// The default value '...' fills in what is left out.
#include "../include/data.p4"

struct p_t {
    bit<8> first;
    bit<8> second;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        p_t x = { second = 9, ... };
        hdr.data.d = x.first;
        hdr.data.e = x.second;
    }
}

#include "../include/main.p4"
