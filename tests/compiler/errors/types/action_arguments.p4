#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action set(bit<8> v, bit<16> w) {
        x = v;
        y = w;
    }
    action from_field(in bit<8> v) {
        x = v;
    }
    table t {
        actions = { set(1); from_field; }
        default_action = set(5);
    }
    apply {
        t.apply();
        set(1);
    }
}
