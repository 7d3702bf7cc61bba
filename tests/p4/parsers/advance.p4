// advance passes over bits: they are gone from the packet.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t count;
    byte_t last;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.count);
        packet.advance((bit<32>)hdr.count.value << 3);
        packet.extract(hdr.last);
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
