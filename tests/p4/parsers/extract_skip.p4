// A header extracted into nothing is passed over.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract<data_t>(_);
        packet.extract(hdr.first);
        transition accept;
    }
}

#include "../include/after.p4"
