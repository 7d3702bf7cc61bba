#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        if (x) {}
        b = x;
        x = b;
        b = !x;
        x = ~b;
        if (x && b) {}
    }
}
