// A parser within the parser, with parameters in and out, called twice.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
    byte_t second;
    byte_t last;
}

struct metadata_t {
    bit<8> sum;
}

parser OneByte(packet_in packet, out byte_t byte, inout bit<8> sum, in bit<8> weight) {
    state start {
        packet.extract(byte);
        sum = sum + byte.value * weight;
        transition accept;
    }
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    OneByte() one;

    state start {
        meta.sum = 0;
        one.apply(packet, hdr.first, meta.sum, 1);
        one.apply(packet, hdr.second, meta.sum, 16);
        packet.extract(hdr.last);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.last.value = meta.sum;
    }
}

#include "../include/after.p4"
