// Transitions decided by metadata, by constants, and by what lies ahead, in a long chain.
#include "../include/before.p4"

header byte_t {
    bit<8> value;
}

struct headers_t {
    byte_t[8] bytes;
}

struct metadata_t {
    bit<4> depth;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        meta.depth = 0;
        transition one;
    }
    state one {
        packet.extract(hdr.bytes.next);
        meta.depth = meta.depth + 1;
        transition select(meta.depth, hdr.bytes.last.value[7:4]) {
            (4, _): accept;
            (_, 0xf): three_more;
            default: one;
        }
    }
    state three_more {
        packet.extract(hdr.bytes.next);
        packet.extract(hdr.bytes.next);
        packet.extract(hdr.bytes.next);
        meta.depth = 0xf;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.bytes[0].value = (bit<8>)meta.depth;
    }
}

#include "../include/after.p4"
