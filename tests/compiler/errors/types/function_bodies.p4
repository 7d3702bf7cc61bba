bit<8> forgets(in bit<8> a) {
    if (a == 1) {
        return 2;
    }
}

void returns(in bit<8> a) {
    return 1;
}

bit<8> wrong(in bit<8> a) {
    return true;
}
