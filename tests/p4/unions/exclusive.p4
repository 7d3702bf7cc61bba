// Making one header valid makes the other invalid.
#include <v1model.p4>

header byte_t {
    bit<8> kind;
    bit<8> x;
}

header word_t {
    bit<8>  kind;
    bit<16> x;
}

header_union u_t {
    byte_t byte;
    word_t word;
}

struct headers {
    u_t u;
}

struct metadata {}

parser P(packet_in pkt, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(pkt.lookahead<bit<8>>()) {
            1: byte;
            2: word;
            default: accept;
        }
    }
    state byte {
        pkt.extract(hdr.u.byte);
        transition accept;
    }
    state word {
        pkt.extract(hdr.u.word);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.u.word.setValid();
        hdr.u.word.kind = 2;
        hdr.u.word.x = 0x1234;
    }
}

#include "../include/main.p4"
