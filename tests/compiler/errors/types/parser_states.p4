#include <core.p4>

header h_t {
    bit<8> a;
}

parser P(packet_in pkt, out h_t h) {
    state strat {
        pkt.extract(h);
        transition select(h.a) {
            1: nxet;
            (1, 2): accept;
            default: accept;
            5: accept;
        }
    }
    state next {
        exit;
        return;
    }
}
