// One table of each kind; the first byte of a frame says which to ask.
#include <core.p4>
#include <v1model.p4>

header ask_t {
    bit<8>  which;
    bit<32> ip;
    bit<48> mac;
    bit<16> port;
    bit<8>  proto;
}

struct headers_t { ask_t ask; }
struct meta_t {}

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ask);
        transition accept;
    }
}

control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action send(bit<9> port) { s.egress_spec = port; }
    table exact_mac {
        key = { h.ask.mac: exact; }
        actions = { send; }
        size = 200000;
    }
    table lpm_ip {
        key = { h.ask.ip: lpm; }
        actions = { send; }
        size = 200000;
    }
    table ternary_five {
        key = { h.ask.ip: ternary; h.ask.mac: ternary; h.ask.port: ternary; h.ask.proto: ternary; }
        actions = { send; }
        size = 200000;
    }
    apply {
        if (h.ask.which == 0) {
            exact_mac.apply();
        } else if (h.ask.which == 1) {
            lpm_ip.apply();
        } else {
            ternary_five.apply();
        }
    }
}

control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control Verify(inout headers_t h, inout meta_t m) { apply {} }
control Update(inout headers_t h, inout meta_t m) { apply {} }
control Deparse(packet_out p, in headers_t h) { apply { p.emit(h.ask); } }

V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Deparse()) main;
