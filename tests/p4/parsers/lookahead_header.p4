// lookahead of a whole header gives a value whose fields can be read.
#include "../include/before.p4"

header pair_t {
    bit<8> kind;
    bit<8> length;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> kind;
    bit<8> length;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        pair_t next = packet.lookahead<pair_t>();
        meta.kind = next.kind;
        meta.length = next.length;
        packet.extract(hdr.data);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b3 = meta.length;
        hdr.data.b4 = meta.kind;
    }
}

#include "../include/after.p4"
