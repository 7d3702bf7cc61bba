struct s_t {
    bit<8> header;
    bit<8> table;
}
