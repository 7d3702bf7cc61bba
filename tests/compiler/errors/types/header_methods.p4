#include <core.p4>

header h_t {
    bit<8> a;
}

control C(inout h_t h, inout bit<8> x, inout bit<16> y, inout h_t[4] s) {
    apply {
        if (h.isvalid()) {}
        if (h.isValid) {}
        x.setValid();
        s.push_front(y);
        s.isValid();
        s[5].a = 1;
    }
}
