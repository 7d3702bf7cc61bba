// What statements of the rules stand in.
control Body(inout h1_t h1, inout h2_t h2, inout s1_t s1, inout s2_t s2, inout u_t u,
             inout e1_t e1, inout e2_t e2, inout n1_t n1, inout n2_t n2, inout t1_t t1,
             inout t2_t t2, inout bit<8> b, inout bit<16> w, inout int<8> i, inout bool o,
             inout h1_t[4] st, inout u_t[4] us, inout varbit<32> v, in bit<8> ro, inout error er) {
    action none() {}
    action take(in bool p) {}
    table t { actions = { none; } default_action = none(); }
    apply @@@
}
