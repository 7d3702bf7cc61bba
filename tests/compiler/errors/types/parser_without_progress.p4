#include <core.p4>

parser P(packet_in pkt, inout bit<8> x) {
    state start {
        transition loop;
    }
    state loop {
        transition select(x) {
            0: accept;
            default: loop;
        }
    }
}
