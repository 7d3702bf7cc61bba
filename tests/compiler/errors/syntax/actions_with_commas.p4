control C(inout bit<8> x) {
    action a() {}
    action b() {}
    table t {
        actions = { a, b }
    }
    apply {}
}
