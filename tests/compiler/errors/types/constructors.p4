#include <core.p4>

control Add(inout bit<8> x)(bit<8> by) {
    apply {
        x = x + by;
    }
}

control C(inout bit<8> x) {
    Add() none;
    Add(1, 2) two;
    Add(x) variable;
    Sub(1) unknown;
    packet_in packet;
    packet_in() made;
    apply {
        none.apply();
        none();
        Add(1).apply(x);
    }
}
