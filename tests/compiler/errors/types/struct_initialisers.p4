#include <core.p4>

struct s_t {
    bit<8> a;
    bit<8> b;
}

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        s_t s = { 1 };
        s = { 1, 2, 3 };
        s = { a = 1 };
        s = { a = 1, c = 2 };
        s = { a = true, b = 1 };
    }
}
