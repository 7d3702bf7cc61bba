// Elements are headers as any: copied, compared, made valid by assignment.
#include "../include/before.p4"

header pair_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    pair_t[3] pairs;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.pairs.next);
        packet.extract(hdr.pairs.next);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.pairs[0] == hdr.pairs[1]) {
            std.egress_spec = 3;
        }
        hdr.pairs[2] = hdr.pairs[0];
        hdr.pairs[0] = { 1, hdr.pairs[1].a };
    }
}

#include "../include/after.p4"
