// A header with a varbit field copied whole.
#include <v1model.p4>

header h_t {
    bit<8>      length;
    varbit<256> rest;
}

struct headers {
    h_t h;
    h_t copy;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h, (bit<32>)pkt.lookahead<bit<8>>() * 8);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.copy = hdr.h;
        hdr.copy.length = 0xFF;
    }
}

#include "../include/main.p4"
