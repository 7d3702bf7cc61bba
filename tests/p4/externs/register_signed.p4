// A register of signed numbers.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<int<8>>(1) r;

    apply {
        std.egress_spec = 2;
        int<8> n;
        r.read(n, 0);
        hdr.data.d = n < 0 ? 8w1 : 8w0;
        r.write(0, n - 1);
    }
}

#include "../include/main.p4"
