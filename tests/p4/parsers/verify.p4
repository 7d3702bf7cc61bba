// verify ends the parser with an error of the program's own.
#include "../include/before.p4"

error {
    WrongVersion,
    WrongLength
}

struct headers_t {
    data_t data;
    data_t more;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        verify(hdr.data.b1 == 4, error.WrongVersion);
        verify(hdr.data.h1 >= 5 && hdr.data.h1 <= 60, error.WrongLength);
        packet.extract(hdr.more);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.WrongVersion) {
            hdr.data.b2 = 1;
        } else if (std.parser_error == error.WrongLength) {
            hdr.data.b2 = 2;
        } else if (std.parser_error == error.PacketTooShort) {
            hdr.data.b2 = 3;
        } else if (hdr.more.isValid()) {
            hdr.data.b2 = 4;
        }
    }
}

#include "../include/after.p4"
