control C(inout bit<8> x) {
    apply {
        action set() {
            x = 1;
        }
        set();
    }
}
