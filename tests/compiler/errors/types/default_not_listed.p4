#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action a() {}
    action other() {}
    table t {
        actions = { a; }
        default_action = other();
    }
    apply {
        t.apply();
    }
}
