// Constants of several types.
#include "../include/data.p4"

struct p_t {
    bit<8> first;
    bit<8> second;
}

const bit<32> BIG = 0x12345678;
const p_t PAIR = { 11, 22 };
const bool ON = true;
const bit<8> LIMIT = 3 * 4;

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.a = BIG;
        hdr.data.d = PAIR.second;
        if (ON) {
            hdr.data.e = LIMIT;
        }
    }
}

#include "../include/main.p4"
