// lookahead reads the bits to come and leaves them where they are.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t tag;
    data_t data;
}

struct metadata_t {
    bit<12> seen;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        meta.seen = packet.lookahead<bit<12>>();
        transition select(packet.lookahead<bit<8>>()) {
            0xaa: tagged;
            default: plain;
        }
    }
    state tagged {
        packet.extract(hdr.tag);
        transition plain;
    }
    state plain {
        packet.extract(hdr.data);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.h1 = (bit<16>)meta.seen;
    }
}

#include "../include/after.p4"
