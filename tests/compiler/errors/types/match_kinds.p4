#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action a() {}
    table t {
        key = {
            x : exct;
            y : prefix;
            b : lpm;
        }
        actions = { a; }
    }
    apply {
        t.apply();
    }
}
