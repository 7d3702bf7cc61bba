control C(inout bit<8> x) {
    action a() {}
}
