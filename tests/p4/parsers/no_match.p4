// Without a case that applies the parser ends with error.NoMatch; ingress runs all the same.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.b1) {
            1: accept;
        }
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (std.parser_error == error.NoMatch) {
            hdr.data.b2 = 0xee;
        } else if (std.parser_error == error.NoError) {
            hdr.data.b2 = 0x11;
        }
    }
}

#include "../include/after.p4"
