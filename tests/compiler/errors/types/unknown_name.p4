#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    bit<8> count = 0;
    apply {
        cuont = 1;
        undeclared = 2;
        frobnicate(3);
    }
}
