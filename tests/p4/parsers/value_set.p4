// Values the control plane may add decide where the parser goes.
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
    value_set<bit<16>>(4) known;

    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.h1) {
            0x9999: fixed;
            known: found;
            default: accept;
        }
    }
    state fixed {
        meta.path = 1;
        transition accept;
    }
    state found {
        meta.path = 2;
        transition accept;
    }
}

#define OWN_INGRESS
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        hdr.data.b1 = meta.path;
    }
}

#include "../include/after.p4"
