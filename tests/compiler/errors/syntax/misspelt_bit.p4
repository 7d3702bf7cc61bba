struct s_t {
    bitt<8> a;
}
