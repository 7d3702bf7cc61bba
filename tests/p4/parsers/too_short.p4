// A packet too short for a header: that header stays invalid, its bytes are payload.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t first;
    data_t data;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.data);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.PacketTooShort) {
            hdr.first.value = 0xee;
        }
        if (hdr.data.isValid()) {
            hdr.data.b4 = 0x77;
        }
    }
}

#include "../include/after.p4"
