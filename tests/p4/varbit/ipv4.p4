// IPv4 with options: ihl tells the length, the payload follows.
#include "../include/before.p4"

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<32> rest;
    bit<32> more;
    bit<32> src;
    bit<32> dst;
    varbit<320> options;
}

struct headers_t {
    ipv4_t ipv4;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        bit<8> first = packet.lookahead<bit<8>>();
        verify(first[3:0] >= 5, error.ParserInvalidArgument);
        packet.extract(hdr.ipv4, ((bit<32>)first[3:0] - 5) * 32);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error != error.NoError) {
            std.egress_spec = 3;
        } else {
            hdr.ipv4.tos = 0x0f;
        }
    }
}

#include "../include/after.p4"
