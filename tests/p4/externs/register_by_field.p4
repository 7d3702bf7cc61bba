// A register indexed by a field.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;

    apply {
        std.egress_spec = 2;
        bit<32> n;
        r.read(n, (bit<32>)hdr.data.d);
        hdr.data.b = n;
        r.write((bit<32>)hdr.data.d, hdr.data.a);
    }
}

#include "../include/main.p4"
