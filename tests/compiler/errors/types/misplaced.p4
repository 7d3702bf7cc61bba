#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        break;
        for (bit<8> i in x) {}
    }
}
