// A register changed under a condition inside one action.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;
    action limit(in bit<32> index) {
        bit<32> n;
        r.read(n, index);
        if (n >= 2) {
            n = 0;
        } else {
            n = n + 1;
        }
        r.write(index, n);
        hdr.data.a = n;
    }

    apply {
        std.egress_spec = 2;
        limit((bit<32>)hdr.data.d);
    }
}

#include "../include/main.p4"
