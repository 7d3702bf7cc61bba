// A sub-parser whose instances differ by a constructor's argument.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
    byte_t second;
}

struct metadata_t {
    bit<8> a;
    bit<8> b;
}

parser Tagged(packet_in packet, out byte_t byte, out bit<8> tag)(bit<8> own) {
    state start {
        packet.extract(byte);
        tag = own;
        transition accept;
    }
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    Tagged(7) seven;
    Tagged(9) nine;

    state start {
        seven.apply(packet, hdr.first, meta.a);
        nine.apply(packet, hdr.second, meta.b);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.first.value = hdr.first.value + meta.a;
        hdr.second.value = hdr.second.value + meta.b;
    }
}

#include "../include/after.p4"
