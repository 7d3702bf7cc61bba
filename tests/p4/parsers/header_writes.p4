// A parser may change fields, make headers valid and invalid.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t made;
    byte_t first;
    byte_t second;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        hdr.made.setValid();
        hdr.made.value = hdr.first.value + hdr.second.value;
        hdr.second.value = 0x22;
        transition select(hdr.made.value) {
            0: hide;
            default: accept;
        }
    }
    state hide {
        hdr.first.setInvalid();
        transition accept;
    }
}

#include "../include/after.p4"
