// A header extracted again holds what was read last; the first bytes are gone.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t byte;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.byte);
        packet.extract(hdr.byte);
        transition accept;
    }
}

#include "../include/after.p4"
