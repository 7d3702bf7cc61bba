// A stack assigned to another takes its elements along with their validity.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[2] first;
    byte_t[2] second;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first.next);
        packet.extract(hdr.second.next);
        packet.extract(hdr.second.next);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.first[0].value == 1) {
            hdr.first = hdr.second;
        } else {
            hdr.second = hdr.first;
        }
    }
}

#include "../include/after.p4"
