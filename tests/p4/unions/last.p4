// A field of the union that was parsed last.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

header word_t {
    bit<8> kind;
    bit<16> value;
}

header_union option_t {
    byte_t byte;
    word_t word;
}

struct headers_t {
    option_t[2] options;
}

struct metadata_t {
    bit<16> seen;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0: byte;
            default: word;
        }
    }
    state byte {
        packet.extract(hdr.options.next.byte);
        transition start;
    }
    state word {
        packet.extract(hdr.options.next.word);
        meta.seen = hdr.options.last.word.value;
        transition select(hdr.options.last.word.kind) {
            1: accept;
            default: start;
        }
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = meta.seen[8:0];
    }
}

#include "../include/after.p4"
