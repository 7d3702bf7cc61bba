// In the second generation of v1model a register has an index type.
#define V1MODEL_VERSION 20200408
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>, bit<8>>(256) r;

    apply {
        std.egress_spec = 2;
        bit<32> n;
        r.read(n, hdr.data.d);
        r.write(hdr.data.d, n + 1);
        hdr.data.a = n;
    }
}

#include "../include/main.p4"
