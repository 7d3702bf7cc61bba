#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action act() {
        t.apply();
    }
    action a() {}
    table t {
        actions = { a; }
    }
    apply {
        t();
        t.run();
        t.apply(1);
        if (t.apply()) {}
        x = t;
        act();
    }
}
