/* Loops that end or not as the packet says: in an action, around a table, one within another. */
#include <core.p4>
#include <v1model.p4>

header turns_t { bit<8> where; bit<32> inner; bit<32> outer; bit<8> step; bit<32> taken; }
struct headers { turns_t turns; }
struct metadata { }

parser MyParser(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t std) {
    state start { p.extract(hdr.turns); transition accept; }
}
control MyVerify(inout headers hdr, inout metadata m) { apply { } }
control MyUpdate(inout headers hdr, inout metadata m) { apply { } }

control Loops(inout headers hdr, in bit<8> here) {
    action turn() { hdr.turns.taken = hdr.turns.taken + 1; }
    table each {
        key = { hdr.turns.where : exact; }
        actions = { turn; }
        const default_action = turn();
    }
    apply {
        if (hdr.turns.where == here) {
            for (bit<32> i = 0; i < hdr.turns.outer; i = i + (bit<32>)hdr.turns.step) {
                for (bit<32> j = 0; j < hdr.turns.inner; j = j + (bit<32>)hdr.turns.step) {
                    hdr.turns.taken = hdr.turns.taken + 1;
                }
            }
        } else if (hdr.turns.where == here + 2) {
            for (bit<32> i = 0; i < hdr.turns.outer; i = i + (bit<32>)hdr.turns.step) {
                each.apply();
            }
        }
    }
}

control MyIngress(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        Loops.apply(hdr, 0);
    }
}
control MyEgress(inout headers hdr, inout metadata m, inout standard_metadata_t std) {
    apply { Loops.apply(hdr, 1); }
}
control MyDeparser(packet_out p, in headers hdr) { apply { p.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), MyDeparser()) main;
