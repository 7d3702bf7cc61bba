// Making one member of a union valid makes the others invalid.
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
        packet.extract(hdr.number.short);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.kind.value == 1) {
            bit<8> value = hdr.number.short.value;
            hdr.number.long.setValid();
            hdr.number.long.value = (bit<16>)value;
        } else if (hdr.kind.value == 2) {
            hdr.number.short.setInvalid();
        }
        if (hdr.number.short.isValid()) {
            hdr.kind.value = hdr.kind.value | 0x10;
        }
        if (hdr.number.long.isValid()) {
            hdr.kind.value = hdr.kind.value | 0x20;
        }
    }
}

#include "../include/after.p4"
