control C(inout bit<8> x) {
    apply {
        x = 2;
    }
}
}

const bit<8> Y = ;
