// One table per way to match; each writes what it found into a field of its own.
#include <core.p4>
#include <v1model.p4>

header keys_t {
    bit<48>  mac;
    bit<16>  port;
    bit<32>  ip;
    bit<64>  wide;
    bit<128> ip6;
    bit<8>   proto;
}

header found_t {
    bit<32> exact_one;
    bit<32> exact_many;
    bit<32> lpm32;
    bit<32> lpm64;
    bit<32> lpm128;
    bit<32> lpm_mixed;
    bit<32> ternary_one;
    bit<32> ternary_many;
    bit<32> range_mixed;
}

struct headers_t { keys_t keys; found_t found; }
struct meta_t {}

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.keys);
        p.extract(h.found);
        transition accept;
    }
}

control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set_exact_one(bit<32> tag) { h.found.exact_one = tag; }
    action set_exact_many(bit<32> tag) { h.found.exact_many = tag; }
    action set_lpm32(bit<32> tag) { h.found.lpm32 = tag; }
    action set_lpm64(bit<32> tag) { h.found.lpm64 = tag; }
    action set_lpm128(bit<32> tag) { h.found.lpm128 = tag; }
    action set_lpm_mixed(bit<32> tag) { h.found.lpm_mixed = tag; }
    action set_ternary_one(bit<32> tag) { h.found.ternary_one = tag; }
    action set_ternary_many(bit<32> tag) { h.found.ternary_many = tag; }
    action set_range_mixed(bit<32> tag) { h.found.range_mixed = tag; }

    table exact_one {
        key = { h.keys.mac: exact; }
        actions = { set_exact_one; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table exact_many {
        key = { h.keys.mac: exact; h.keys.port: exact; h.keys.ip6: exact; }
        actions = { set_exact_many; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table lpm32 {
        key = { h.keys.ip: lpm; }
        actions = { set_lpm32; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table lpm64 {
        key = { h.keys.wide: lpm; }
        actions = { set_lpm64; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table lpm128 {
        key = { h.keys.ip6: lpm; }
        actions = { set_lpm128; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table lpm_mixed {
        key = { h.keys.port: exact; h.keys.ip: lpm; }
        actions = { set_lpm_mixed; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table ternary_one {
        key = { h.keys.ip: ternary; }
        actions = { set_ternary_one; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    direct_counter(CounterType.packets) ternary_hits;
    table ternary_many {
        counters = ternary_hits;
        key = { h.keys.ip: ternary; h.keys.port: exact; h.keys.proto: ternary; h.keys.wide: lpm; }
        actions = { set_ternary_many; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }
    table range_mixed {
        key = { h.keys.port: range; h.keys.proto: ternary; h.keys.ip: range; }
        actions = { set_range_mixed; @defaultonly NoAction; }
        default_action = NoAction();
        size = 1000000;
    }

    apply {
        exact_one.apply();
        exact_many.apply();
        lpm32.apply();
        lpm64.apply();
        lpm128.apply();
        lpm_mixed.apply();
        ternary_one.apply();
        ternary_many.apply();
        range_mixed.apply();
        s.egress_spec = 1;
    }
}

control Verify(inout headers_t h, inout meta_t m) { apply {} }
control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control Update(inout headers_t h, inout meta_t m) { apply {} }
control Deparse(packet_out p, in headers_t h) {
    apply {
        p.emit(h.keys);
        p.emit(h.found);
    }
}

V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Deparse()) main;
