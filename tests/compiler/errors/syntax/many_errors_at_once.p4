struct a_t {
    bit<8> x
}

header b_t {
    bit<> y;
}

control C(inout bit<8> x) {
    apply {
        x = ;
        x = 1
        x = 2;
    }
}
