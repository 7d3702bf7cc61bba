control C(inout bit<8> x) {
    x = 1;
    if (x == 2) {
        x = 3;
    }
    apply {}
}
