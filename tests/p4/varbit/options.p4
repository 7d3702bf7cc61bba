// A header with a field whose length another field tells.
#include "../include/before.p4"

header options_t {
    bit<8> length;
    varbit<64> options;
}

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t length;
    options_t options;
    byte_t last;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.options, (bit<32>)packet.lookahead<bit<8>>() << 3);
        packet.extract(hdr.last);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.HeaderTooShort) {
            std.egress_spec = 3;
        } else if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 4;
        }
        hdr.last.value = hdr.last.value + 1;
    }
}

#include "../include/after.p4"
