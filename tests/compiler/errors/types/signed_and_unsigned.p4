#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        int<8> i = (int<8>)x;
        x = i;
        x = x + i;
        i = (int<16>)x;
    }
}
