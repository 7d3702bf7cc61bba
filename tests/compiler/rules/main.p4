// A switch around `body.p4`: what a rule allows there is compiled to the end.
#include <v1model.p4>
struct rule_headers { h1_t h1; h2_t h2; u_t u; h1_t[4] st; u_t[4] us; }
struct rule_metadata {
    s1_t s1; s2_t s2; e1_t e1; e2_t e2; n1_t n1; n2_t n2; t1_t t1; t2_t t2;
    bit<8> b; bit<16> w; int<8> i; bool o; bit<8> ro; error er; varbit<32> v;
}
parser RuleParser(packet_in packet, out rule_headers h, inout rule_metadata m,
                  inout standard_metadata_t std) {
    state start { packet.extract(h.h1); transition accept; }
}
control RuleChecks(inout rule_headers h, inout rule_metadata m) { apply {} }
control RuleIngress(inout rule_headers h, inout rule_metadata m, inout standard_metadata_t std) {
    apply {
        Body.apply(h.h1, h.h2, m.s1, m.s2, h.u, m.e1, m.e2, m.n1, m.n2, m.t1, m.t2, m.b, m.w, m.i,
                   m.o, h.st, h.us, m.v, m.ro, m.er);
    }
}
control RuleEgress(inout rule_headers h, inout rule_metadata m, inout standard_metadata_t std) {
    apply {}
}
control RuleDeparser(packet_out packet, in rule_headers h) { apply { packet.emit(h); } }
V1Switch(RuleParser(), RuleChecks(), RuleIngress(), RuleEgress(), RuleChecks(),
         RuleDeparser()) main;
