#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action a() {}
    table t {
        key = {
            x : exact;
        }
        actions = { a; }
        const entries = {
            300 : a();
        }
    }
    bit<8> n = "text";
    apply {
        t.apply();
        x = 256;
        x = -200;
    }
}
