// Every extern a control plane can reach, in one program.
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> key;
    bit<16> sel;
    bit<8>  member;
    bit<8>  color;
    bit<8>  direct_color;
    bit<8>  known;
    bit<64> flow;
}

struct headers_t { h_t h; }
struct meta_t { bit<2> color; }
struct seen_t { bit<16> key; bit<64> flow; bit<9> port; }

parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<16>>(8) known;
    state start {
        p.extract(h.h);
        transition select(h.h.key) {
            known: mark;
            default: accept;
        }
    }
    state mark {
        h.h.known = 1;
        transition accept;
    }
}

control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<48>>(8) narrow;
    register<bit<128>>(4) wide;
    counter(16, CounterType.packets_and_bytes) arrivals;
    meter(4, MeterType.bytes) rate;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) pace;
    action_selector(HashAlgorithm.crc16, 64, 16) paths;

    action seen() { hits.count(); pace.read(m.color); }
    action choose(bit<8> id) { h.h.member = id; }

    table flows {
        key = { h.h.key: exact; }
        actions = { seen; NoAction; }
        default_action = NoAction();
        counters = hits;
        meters = pace;
        support_timeout = true;
        size = 1024;
    }
    table spread {
        key = { h.h.sel: exact; h.h.flow: selector; }
        actions = { choose; NoAction; }
        implementation = paths;
        size = 1024;
    }

    apply {
        s.egress_spec = 1;
        narrow.write(0, s.ingress_global_timestamp);
        wide.write(1, (bit<128>)h.h.flow << 64 | (bit<128>)h.h.key);
        arrivals.count((bit<32>)s.ingress_port);
        bit<8> c;
        rate.execute_meter((bit<32>)s.ingress_port, c);
        h.h.color = c;
        flows.apply();
        h.h.direct_color = (bit<8>)m.color;
        spread.apply();
        digest<seen_t>(1, { h.h.key, h.h.flow, s.ingress_port });
    }
}

control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control Verify(inout headers_t h, inout meta_t m) { apply {} }
control Update(inout headers_t h, inout meta_t m) { apply {} }
control Deparse(packet_out p, in headers_t h) { apply { p.emit(h.h); } }

V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Deparse()) main;
