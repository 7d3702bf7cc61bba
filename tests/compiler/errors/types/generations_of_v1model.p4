#include <v1model.p4>

control C(inout bit<32> x) {
    register<bit<32>, bit<32>>(8) r;
    counter<bit<8>>(8, CounterType.packets) c;
    register(8) s;
    apply {}
}
