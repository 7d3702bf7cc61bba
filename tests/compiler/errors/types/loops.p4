#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        break;
        continue;
        for (bit<8> i in x) {}
        for (bit<16> i in 8w1 .. 8w5) {}
        for (bit<8> i = 0; x; i = i + 1) {}
    }
}
