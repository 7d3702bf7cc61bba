struct s_t {
    bit<8> a;
    bit<8> a;
}

struct s_t {}

enum E { one, one }

control C(inout bit<8> x, inout bit<8> x) {
    action a() {}
    action a() {}
    apply {
        bit<8> y;
        bit<8> y;
    }
}
