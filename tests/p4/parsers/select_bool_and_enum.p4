// select on a comparison, and on a serializable enum.
#include "../include/before.p4"

enum bit<8> Kind {
    first = 1,
    second = 2
}

header kind_t {
    Kind kind;
    bit<8> value;
}

struct headers_t {
    kind_t kind;
}

struct metadata_t {
    bit<8> path;
}

#define OWN_PARSER
parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            Kind.first: first;
            Kind.second: second;
            default: accept;
        }
    }
    state first {
        meta.path = 0x10;
        transition accept;
    }
    state second {
        transition select((bit<1>)(hdr.kind.value > 100)) {
            1: large;
            0: small;
        }
    }
    state large {
        meta.path = 0x21;
        transition accept;
    }
    state small {
        meta.path = 0x20;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.kind.value = meta.path;
    }
}

#include "../include/after.p4"
