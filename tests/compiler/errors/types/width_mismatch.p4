#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        y = x;
        x = y;
        x = x + y;
        if (x == y) {}
        bit<4> n = 8w1;
    }
}
