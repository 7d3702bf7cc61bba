#include <core.p4>

header h_t {
    bit<8> address;
    bit<8> port;
}

control C(inout h_t h, inout bit<8> x) {
    apply {
        h.adr = 1;
        h.nothing_like_it = 2;
        x.field = 3;
    }
}
