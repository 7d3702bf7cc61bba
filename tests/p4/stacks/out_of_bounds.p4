// One header more than a stack holds is error.StackOutOfBounds; what was parsed stays.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[2] bytes;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.bytes.next);
        transition select(hdr.bytes.last.value) {
            0: accept;
            default: start;
        }
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.StackOutOfBounds) {
            std.egress_spec = 3;
            hdr.bytes[0].value = 0xee;
        }
    }
}

#include "../include/after.p4"
