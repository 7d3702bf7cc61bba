extern E {
    E();
}

header h_t {
    bool[3] flags;
    string name;
    int n;
    tuple<bit<8>> t;
}

header_union u_t {
    bit<8> x;
}

struct s_t {
    bit<8>[4] bytes;
    bit<99999> wide;
}
