#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    action a() {}
    table t {
        actions = { a; }
    }
    apply {
        switch (x) {
            1: {}
            1: {}
            y: {}
            default: {}
            2: {}
        }
        switch (t.apply().action_run) {
            a: {}
            nothing: {}
        }
        switch (b) {
            5: {}
        }
    }
}
