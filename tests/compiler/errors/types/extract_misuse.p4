#include <core.p4>

header h_t {
    bit<8> a;
}

header v_t {
    bit<8> n;
    varbit<64> rest;
}

struct s_t {
    h_t h;
    v_t v;
}

parser P(packet_in pkt, out s_t s) {
    bit<8> x;
    state start {
        pkt.extract(s);
        pkt.extract(x);
        pkt.extract(s.v);
        pkt.extract(s.h, 8);
        pkt.extrat(s.h);
        transition accept;
    }
}
