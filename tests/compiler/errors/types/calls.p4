#include <core.p4>

bit<8> f(in bit<8> a, in bit<8> b) {
    return a + b;
}

void g(out bit<8> a) {
    a = 1;
}

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        f(1);
        x = f(1, 2, 3);
        x = f(y, 1);
        g(5);
        x = f(b = 1, c = 2);
        x();
    }
}
