// Headers as values: local ones, set from lists, compared with their validity.
#include "../include/before.p4"

header pair_t {
    bit<8> a;
    bit<8> b;
}

struct headers_t {
    pair_t first;
    pair_t second;
    pair_t third;
}

struct metadata_t {
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        pair_t local;
        local.setInvalid();
        if (hdr.first == hdr.second) {
            hdr.third = { 0xee, 0xee };
        }
        if (hdr.first.a == 1) {
            local = hdr.first;
            local.b = 0x77;
            hdr.second = local;
        } else if (hdr.first.a == 2) {
            hdr.second = local;
        } else if (hdr.first.a == 3) {
            hdr.second = { b = 5, a = 6 };
        }
        if (local.isValid()) {
            hdr.first.a = hdr.first.a | 0x80;
        }
    }
}

#include "../include/after.p4"
