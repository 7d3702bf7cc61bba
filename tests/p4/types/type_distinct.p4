// A type of its own must be cast.
#include "../include/data.p4"

type bit<8> Port;

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Port p = (Port)hdr.data.d;
        Port q = p;
        if (p == q) {
            hdr.data.e = (bit<8>)q;
        }
    }
}

#include "../include/main.p4"
