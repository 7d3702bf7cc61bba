control C(inout bit<8> x) {
    apply {
        if (x == 1);
        else x = 2;
        else x = 3;
    }
}
