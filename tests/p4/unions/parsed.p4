// A union holds the one header that was parsed.
#include "../include/before.p4"

header short_t {
    bit<8> value;
}

header long_t {
    bit<16> value;
}

header_union number_t {
    short_t short;
    long_t long;
}

struct headers_t {
    short_t kind;
    number_t number;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.value) {
            1: short;
            2: long;
            default: accept;
        }
    }
    state short {
        packet.extract(hdr.number.short);
        transition accept;
    }
    state long {
        packet.extract(hdr.number.long);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.number.short.isValid()) {
            hdr.number.short.value = hdr.number.short.value + 1;
        } else if (hdr.number.long.isValid()) {
            hdr.number.long.value = hdr.number.long.value + 1;
        } else if (!hdr.number.isValid()) {
            hdr.kind.value = 0xee;
        }
    }
}

#include "../include/after.p4"
