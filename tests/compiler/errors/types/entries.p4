#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action a() {}
    action set(bit<8> v) {}
    table t {
        key = {
            x : exact;
            y : ternary;
        }
        actions = { a; set; }
        const entries = {
            (1) : a();
            (_, 2) : a();
            (1 &&& 3, 2) : a();
            (1, 2) : set();
            (1, 2) : nothing();
            (1, 2 .. 3) : a();
        }
    }
    apply {
        t.apply();
    }
}
