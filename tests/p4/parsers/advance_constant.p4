// advance by a constant number of bits.
#include "../include/one_header.p4"

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.advance(16);
        packet.extract(hdr.data);
        transition accept;
    }
}

#include "../include/after.p4"
