// A sub-parser that branches, and whose error ends the whole parser.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t kind;
    byte_t a;
    byte_t b;
    byte_t last;
}

struct metadata_t {
}

parser Option(packet_in packet, inout headers_t hdr) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.value) {
            0: accept;
            1: one;
            default: two;
        }
    }
    state one {
        packet.extract(hdr.a);
        transition accept;
    }
    state two {
        packet.extract(hdr.b);
        transition one;
    }
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        Option.apply(packet, hdr);
        packet.extract(hdr.last);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 3;
        }
        if (hdr.last.isValid()) {
            hdr.last.value = 0xff;
        }
    }
}

#include "../include/after.p4"
