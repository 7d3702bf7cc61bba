#include <core.p4>

header h_t {
    bit<8> a;
}

control C(inout h_t h) {
    action a() {}
    table t {
        key = {
            h : exact;
        }
        actions = { a; }
    }
    apply {
        t.apply();
    }
}
