// An action called directly, with arguments in all directions.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action act(in bit<32> x, out bit<8> y, inout bit<8> z) {
        y = x[7:0];
        z = z + 1;
    }

    apply {
        std.egress_spec = 2;
        act(hdr.data.a, hdr.data.d, hdr.data.e);
    }
}

#include "../include/main.p4"
