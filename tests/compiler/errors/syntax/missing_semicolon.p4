header h_t {
    bit<8> a
    bit<8> b;
}

struct s_t {
    bit<8> x;
    bit<8> y
}
