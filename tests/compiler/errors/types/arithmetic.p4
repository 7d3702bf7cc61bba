#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        x = x / 0;
        x = x << -1;
        x = 1 ++ x;
        int<8> i = 5;
        i = i / 2;
        x = true + 1;
        const bit<8> z = x;
    }
}
