#include <core.p4>

const bit<8> LIMIT = 5;

control C(in bit<8> p, inout bit<8> x) {
    action act(bit<8> data) {
        data = 1;
    }
    apply {
        p = 1;
        LIMIT = 2;
        8w3 = x;
        act(1);
    }
}
