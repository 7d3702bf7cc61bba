// A continue goes on with the next round.
#include "../include/data.p4"

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        for (bit<8> i in 1 .. 10) {
            if (i[0:0] == 1) {
                continue;
            }
            n = n + i;
        }
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
