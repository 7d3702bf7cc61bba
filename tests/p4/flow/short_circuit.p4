// The right side of && and || runs only when it matters.
#include "../include/data.p4"

bool touch(inout bit<8> n) {
    n = n + 1;
    return true;
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        bit<8> n = 0;
        if (hdr.data.a == 0 && touch(n)) { }
        if (hdr.data.a == 0 || touch(n)) { }
        hdr.data.d = n;
    }
}

#include "../include/main.p4"
