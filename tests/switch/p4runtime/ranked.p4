// Const entries that overlap: the first that matches wins.

#include <core.p4>
#include <v1model.p4>

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
}

struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.first);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Forward(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets) hits;

    action forward(bit<9> port) {
        hits.count();
        standard_metadata.egress_spec = port;
    }
    table ranked {
        key = { hdr.first.value: ternary; }
        actions = { forward; }
        counters = hits;
        const entries = {
            1: forward(1);
            1 &&& 1: forward(2);
            _: forward(3);
        }
    }
    apply {
        ranked.apply();
    }
}

control Leave(inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    apply { }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.first);
    }
}

V1Switch(Parse(), Verify(), Forward(), Leave(), Compute(), Deparse()) main;
