// select on several expressions at once, with don't-cares, masks and ranges mixed.
#include "../include/before.p4"

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> path;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.b1, hdr.data.b2 + 1, hdr.data.h1[3:0]) {
            (1, 1, 1): ones;
            (1, _, 0x8 &&& 0x8): masked;
            (_, 3 .. 5, _): ranged;
            default: other;
        }
    }
    state ones {
        meta.path = 0xa;
        transition accept;
    }
    state masked {
        meta.path = 0xb;
        transition accept;
    }
    state ranged {
        meta.path = 0xc;
        transition accept;
    }
    state other {
        meta.path = 0xd;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b4 = meta.path;
    }
}

#include "../include/after.p4"
