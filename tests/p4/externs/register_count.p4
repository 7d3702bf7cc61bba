// A register keeps its value from packet to packet.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(8) r;

    apply {
        std.egress_spec = 2;
        bit<32> n;
        r.read(n, 3);
        n = n + 1;
        r.write(3, n);
        hdr.data.a = n;
    }
}

#include "../include/main.p4"
