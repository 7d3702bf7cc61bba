#include <core.p4>

type bit<8> Port;
enum bit<8> Kind { one = 1 }

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        bit<16> w = (int<16>)x;
        b = (bool)x;
        int<16> i = (int<16>)x;
        Port p = x;
        x = p;
        Kind k = 5;
    }
}
