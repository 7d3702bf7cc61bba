#include <core.p4>

parser P(packet_in pkt) {
    state start {
        pkt.advance(8);
        transition start;
    }
}
