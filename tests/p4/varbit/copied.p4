// Headers with a varbit are copied with its present length.
#include "../include/before.p4"

header options_t {
    bit<8> length;
    varbit<32> options;
}

struct headers_t {
    options_t first;
    options_t second;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first, (bit<32>)packet.lookahead<bit<8>>() << 3);
        packet.extract(hdr.second, (bit<32>)packet.lookahead<bit<8>>() << 3);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        options_t kept = hdr.first;
        hdr.first = hdr.second;
        hdr.second = kept;
    }
}

#include "../include/after.p4"
