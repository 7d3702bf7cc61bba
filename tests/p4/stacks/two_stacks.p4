// Two stacks filled in turns keep their own next.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[3] odd;
    byte_t[3] even;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<bit<8>>()[0:0], packet.lookahead<bit<8>>()) {
            (_, 0xff): accept;
            (1, _): odd;
            (0, _): even;
        }
    }
    state odd {
        packet.extract(hdr.odd.next);
        transition start;
    }
    state even {
        packet.extract(hdr.even.next);
        transition start;
    }
}

#include "../include/after.p4"
