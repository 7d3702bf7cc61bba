#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout bool b) {
    apply {
        x = y[15:9];
        x = y[3:10];
        x = y[23:16];
        x = b[0:0];
        x = y[x:0];
    }
}
