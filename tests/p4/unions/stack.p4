// A stack of unions: options of several lengths, in any order.
#include "../include/before.p4"

header end_t {
    bit<8> kind;
}

header word_t {
    bit<8> kind;
    bit<16> value;
}

header_union option_t {
    end_t end;
    word_t word;
}

struct headers_t {
    option_t[3] options;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0: end;
            1: word;
            default: accept;
        }
    }
    state end {
        packet.extract(hdr.options.next.end);
        transition accept;
    }
    state word {
        packet.extract(hdr.options.next.word);
        transition start;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.options[0].word.isValid()) {
            hdr.options[0].word.value = hdr.options[0].word.value + 1;
        }
        if (hdr.options[1].end.isValid()) {
            hdr.options[1].end.kind = 0x0e;
        }
    }
}

#include "../include/after.p4"
