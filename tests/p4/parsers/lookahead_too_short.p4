// lookahead past the end of the packet is error.PacketTooShort.
#include "../include/one_header.p4"

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<bit<16>>()) {
            0xffff: accept;
            default: more;
        }
    }
    state more {
        packet.extract(hdr.data);
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
    }
}

#include "../include/after.p4"
